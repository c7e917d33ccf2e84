#define _GNU_SOURCE
#include "CCairn.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

// CRC32C in hardware. One stream of CRC instructions has a latency of three cycles a word, so
// long inputs run as three streams side by side. The three registers are then joined: appending
// n zero bytes multiplies a register by x^(8n) modulo the polynomial, which is a carry-less
// multiplication by x^(8n-33) followed by the reduction that the CRC instruction itself does
// (the method of Gopal et al., Intel, 2011). The constants are x^(8n-33), bits reflected.

#if defined(__x86_64__)
#include <immintrin.h>
#define HARDWARE __attribute__((target("sse4.2,pclmul")))
typedef uint64_t crc_register;
#define CRC_WORD(crc, word) _mm_crc32_u64((crc), (word))
#define CRC_BYTE(crc, byte) _mm_crc32_u8((uint32_t)(crc), (byte))
HARDWARE static inline uint64_t multiply(uint64_t a, uint64_t b) {
  __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128((int64_t)a),
                                         _mm_cvtsi64_si128((int64_t)b), 0);
  return (uint64_t)_mm_cvtsi128_si64(product);
}
static bool detect(void) {
  return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
}
#elif defined(__aarch64__) && defined(__linux__)
#include <arm_acle.h>
#include <arm_neon.h>
#include <sys/auxv.h>
#define HARDWARE __attribute__((target("crc,aes")))
typedef uint32_t crc_register;
#define CRC_WORD(crc, word) __crc32cd((crc), (word))
#define CRC_BYTE(crc, byte) __crc32cb((crc), (byte))
HARDWARE static inline uint64_t multiply(uint64_t a, uint64_t b) {
  return vgetq_lane_u64(vreinterpretq_u64_p128(vmull_p64((poly64_t)a, (poly64_t)b)), 0);
}
static bool detect(void) {
  const unsigned long pmull = 1ul << 4, crc32 = 1ul << 7;
  return (getauxval(AT_HWCAP) & (pmull | crc32)) == (pmull | crc32);
}
#endif

#if defined(HARDWARE)

static const uint32_t K128 = 0x0d3b6092, K256 = 0xb9e02b86, K1024 = 0x170076fa, K2048 = 0xa51b6135;

static inline uint64_t load(const uint8_t *bytes) {
  uint64_t word;
  memcpy(&word, bytes, sizeof word);
  return word;
}

/// One pass of three streams of `length` bytes each, a multiple of 8.
HARDWARE static inline uint32_t three_streams(uint32_t state, const uint8_t *bytes, size_t length,
                                              uint32_t once, uint32_t twice) {
  crc_register a = state, b = 0, c = 0;
  for (size_t i = 0; i < length; i += 8) {
    a = CRC_WORD(a, load(bytes + i));
    b = CRC_WORD(b, load(bytes + length + i));
    c = CRC_WORD(c, load(bytes + 2 * length + i));
  }
  return (uint32_t)(CRC_WORD(0, multiply(a, twice)) ^ CRC_WORD(0, multiply(b, once)) ^ c);
}

HARDWARE uint32_t cairn_crc32c(uint32_t state, const void *input, size_t count) {
  const uint8_t *bytes = input;
  for (; count >= 3 * 1024; bytes += 3 * 1024, count -= 3 * 1024)
    state = three_streams(state, bytes, 1024, K1024, K2048);
  for (; count >= 3 * 128; bytes += 3 * 128, count -= 3 * 128)
    state = three_streams(state, bytes, 128, K128, K256);
  crc_register crc = state;
  for (; count >= 8; bytes += 8, count -= 8) crc = CRC_WORD(crc, load(bytes));
  for (; count > 0; bytes += 1, count -= 1) crc = CRC_BYTE(crc, *bytes);
  return (uint32_t)crc;
}

#else

static bool detect(void) { return false; }
uint32_t cairn_crc32c(uint32_t state, const void *bytes, size_t count) {
  (void)bytes, (void)count;
  return state;
}

#endif

bool cairn_crc32c_support = false;
__attribute__((constructor)) static void detect_before_main(void) {
  cairn_crc32c_support = detect();
}

int cairn_fallocate(int descriptor, int64_t offset, int64_t count) {
  return fallocate(descriptor, 0, offset, count);
}

int64_t cairn_filesystem_magic(int descriptor) {
  struct statfs status;
  if (fstatfs(descriptor, &status) != 0) return -1;
  return (uint32_t)status.f_type;
}

int64_t cairn_copy_range(int source, int target, int64_t offset, size_t count) {
  return copy_file_range(source, &offset, target, &(int64_t){offset}, count, 0);
}

int cairn_exchange(int directory, const char *name, const char *other) {
  return (int)syscall(SYS_renameat2, directory, name, directory, other, 2u);
}
