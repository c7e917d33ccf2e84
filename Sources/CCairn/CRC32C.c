#include "CCairn.h"

#include <string.h>

// CRC32C in hardware, by the faster of two methods that the processor supports.
//
// One stream of CRC instructions has a latency of three cycles a word, so long inputs run as three
// streams side by side. The three registers are then combined: appending n zero bytes multiplies a
// register by x^(8n) modulo the polynomial, which is a carry-less multiplication by x^(8n-33)
// followed by the reduction that the CRC instruction itself does (the method of Gopal et al., Intel,
// 2011). The constants are x^(8n-33), bits reflected.
//
// If the processor has an instruction for two carry-less multiplications, long inputs are folded: 128
// bytes are replaced by their remainder, which is multiplied by x^1024 and added to the 128 bytes
// after them (Gopal et al., Intel, 2009). That takes a quarter of the loads, so more cache lines are
// fetched from memory at the same time. The halves of 16 bytes have the constants x^(8n+31) and
// x^(8n-33), bits reflected.

#if defined(__x86_64__)
#include <immintrin.h>
#define HARDWARE __attribute__((target("sse4.2,pclmul")))
#define WIDE __attribute__((target("sse4.2,pclmul,avx2,vpclmulqdq")))
typedef uint64_t crc_register;
#define CRC_WORD(crc, word) _mm_crc32_u64((crc), (word))
#define CRC_HALF(crc, half) _mm_crc32_u32((uint32_t)(crc), (half))
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
#define CRC_HALF(crc, half) __crc32cw((crc), (half))
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

/// One pass over three streams of `length` bytes each. `length` is a multiple of 8.
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

#if defined(WIDE)

static bool is_wide = false;

WIDE static inline __m256i folded(__m256i lanes, __m256i constants, __m256i next) {
  return _mm256_xor_si256(_mm256_xor_si256(_mm256_clmulepi64_epi128(lanes, constants, 0x00),
                                           _mm256_clmulepi64_epi128(lanes, constants, 0x11)),
                          next);
}

/// Updates `state` with the bytes. `count` is a positive multiple of 128. Copies them in the same
/// pass unless `target` is NULL.
WIDE __attribute__((always_inline)) static inline uint32_t fold(
    uint32_t state, uint8_t *target, const uint8_t *bytes, size_t count) {
  const __m256i by128 = _mm256_set_epi64x(0x0d3b6092, 0x6992cea2, 0x0d3b6092, 0x6992cea2);
  const __m256i by32 = _mm256_set_epi64x(0xba4fc28e, 0x3da6d0cb, 0xba4fc28e, 0x3da6d0cb);
  __m256i lanes[4];
  for (size_t offset = 0; offset < count; offset += 128) {
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; i++) {
      __m256i next = _mm256_loadu_si256((const __m256i *)(bytes + offset + 32 * i));
      if (target) _mm256_storeu_si256((__m256i *)(target + offset + 32 * i), next);
      lanes[i] = offset ? folded(lanes[i], by128, next)
                 : i    ? next
                        : _mm256_xor_si256(next, _mm256_set_epi32(0, 0, 0, 0, 0, 0, 0, (int)state));
    }
  }
  __m256i last = lanes[0];
  for (size_t i = 1; i < 4; i++) last = folded(last, by32, lanes[i]);
  const __m128i by16 = _mm_set_epi64x(0x493c7d27, 0xf20c0dfe), low = _mm256_castsi256_si128(last);
  const __m128i end = _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(low, by16, 0x00),
                                                  _mm_clmulepi64_si128(low, by16, 0x11)),
                                    _mm256_extracti128_si256(last, 1));
  const uint64_t register_of_half = _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(end));
  return (uint32_t)_mm_crc32_u64(register_of_half, (uint64_t)_mm_extract_epi64(end, 1));
}

WIDE static uint32_t fold_only(uint32_t state, const uint8_t *bytes, size_t count) {
  return fold(state, NULL, bytes, count);
}

WIDE static uint32_t fold_and_copy(uint32_t state, uint8_t *target, const uint8_t *bytes,
                                   size_t count) {
  return fold(state, target, bytes, count);
}

#endif

/// Updates `state` with bytes that are too few for several streams.
HARDWARE __attribute__((always_inline)) static inline uint32_t one_stream(
    uint32_t state, const uint8_t *bytes, size_t count) {
  crc_register crc = state;
  for (; count >= 16; bytes += 16, count -= 16) crc = CRC_WORD(CRC_WORD(crc, load(bytes)), load(bytes + 8));
  if (count >= 8) crc = CRC_WORD(crc, load(bytes)), bytes += 8, count -= 8;
  if (count >= 4) {
    uint32_t half;
    memcpy(&half, bytes, sizeof half);
    crc = CRC_HALF(crc, half), bytes += 4, count -= 4;
  }
  for (; count > 0; bytes += 1, count -= 1) crc = CRC_BYTE(crc, *bytes);
  return (uint32_t)crc;
}

HARDWARE static uint32_t long_crc32c(uint32_t state, const uint8_t *bytes, size_t count) {
#if defined(WIDE)
  if (is_wide) {
    const size_t folded = count & ~(size_t)127;
    state = fold_only(state, bytes, folded);
    bytes += folded, count -= folded;
  }
#endif
  for (; count >= 3 * 1024; bytes += 3 * 1024, count -= 3 * 1024)
    state = three_streams(state, bytes, 1024, K1024, K2048);
  for (; count >= 3 * 128; bytes += 3 * 128, count -= 3 * 128)
    state = three_streams(state, bytes, 128, K128, K256);
  return one_stream(state, bytes, count);
}

HARDWARE uint32_t cairn_crc32c(uint32_t state, const void *input, size_t count) {
  return count < 256 ? one_stream(state, input, count) : long_crc32c(state, input, count);
}

HARDWARE uint32_t cairn_crc32c_word(uint32_t state, uint64_t word) {
  return (uint32_t)CRC_WORD(state, word);
}

uint32_t cairn_crc32c_copy(uint32_t state, void *target, const void *source, size_t count) {
  uint8_t *to = target;
  const uint8_t *from = source;
#if defined(WIDE)
  if (count >= 256 && is_wide) {
    const size_t folded = count & ~(size_t)127;
    state = fold_and_copy(state, to, from, folded);
    to += folded, from += folded, count -= folded;
  }
#endif
  // Each piece is still in the nearest cache when the checksum is computed.
  while (count > 0) {
    const size_t piece = count < 3 * 1024 ? count : 3 * 1024;
    memcpy(to, from, piece);
    state = cairn_crc32c(state, to, piece);
    to += piece, from += piece, count -= piece;
  }
  return state;
}

#else

static bool detect(void) { return false; }
uint32_t cairn_crc32c(uint32_t state, const void *bytes, size_t count) {
  (void)bytes, (void)count;
  return state;
}
uint32_t cairn_crc32c_word(uint32_t state, uint64_t word) {
  (void)word;
  return state;
}
uint32_t cairn_crc32c_copy(uint32_t state, void *target, const void *source, size_t count) {
  (void)target, (void)source, (void)count;
  return state;
}

#endif

bool cairn_crc32c_support = false;
__attribute__((constructor)) static void detect_before_main(void) {
  cairn_crc32c_support = detect();
#if defined(WIDE)
  is_wide = cairn_crc32c_support && __builtin_cpu_supports("avx2") &&
            __builtin_cpu_supports("vpclmulqdq");
#endif
}
