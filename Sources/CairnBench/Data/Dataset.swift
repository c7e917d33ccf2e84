import Cairn
import CairnLibC

/// The value for each key, and the check of values read back.
///
/// A value is a window of one pool of random bytes, at an offset determined by the seed, the key
/// and its generation (the number of its writes). So making a value costs nothing, and a memory
/// comparison shows whether a read returned the key's newest value. Two values are equal with a
/// probability of 1 in 262,144. The pool stays in the second-level cache.
///
// SAFETY: `@unchecked Sendable` because the pool is written by `init` alone, and a generation only
// while no other thread uses its key. Both are freed by `deinit`; indices come from the workloads,
// which stay below `keyCount`.
@safe
final class Dataset: @unchecked Sendable {
  let keyCount: Int
  /// The size of a value; of images, about the mean.
  let valueByteCount: Int
  let seed: UInt64
  /// The size of each key's value, or empty if all have the same.
  private let byteCounts: [Int32]

  private static let windowCount = 1 << 18
  private let pool: UnsafeMutableRawPointer
  private let generations: UnsafeMutablePointer<UInt16>
  /// The generation of a key that the store does not have.
  static let absent = UInt16.max

  init(keyCount: Int, valueByteCount: Int, areImages: Bool = false, seed: UInt64) {
    self.keyCount = keyCount
    self.valueByteCount = valueByteCount
    self.seed = seed
    var sizes = RandomSource(seed: seed ^ 0x696D_6167)
    byteCounts =
      areImages ? (0..<keyCount).map { _ in Int32(ImageSize.byteCount(&sizes)) } : []
    let largest = byteCounts.max().map(Int.init) ?? valueByteCount
    let wordCount = (Self.windowCount + largest + 7) / 8
    unsafe pool = UnsafeMutableRawPointer.allocate(byteCount: wordCount * 8, alignment: 64)
    var random = RandomSource(seed: seed ^ 0x706F_6F6C)
    for word in 0..<wordCount {
      unsafe pool.storeBytes(of: random.next(), toByteOffset: word * 8, as: UInt64.self)
    }
    unsafe generations = UnsafeMutablePointer<UInt16>.allocate(capacity: max(keyCount, 1))
    unsafe generations.initialize(repeating: Self.absent, count: max(keyCount, 1))
  }

  deinit {
    unsafe pool.deallocate()
    unsafe generations.deallocate()
  }

  // MARK: Contents of the store

  @inline(__always)
  func key(_ index: Int) -> BenchKey { BenchKey(index: index, seed: seed) }

  @inline(__always)
  func generation(of index: Int) -> UInt16 { unsafe generations[index] }

  @inline(__always)
  func setGeneration(_ generation: UInt16, of index: Int) {
    unsafe generations[index] = generation
  }

  func setAllGenerations(_ generation: UInt16) {
    unsafe generations.update(repeating: generation, count: keyCount)
  }

  /// The generation of the key's next write.
  @inline(__always)
  func nextGeneration(of index: Int) -> UInt16 {
    let next = unsafe generations[index] &+ 1
    return next == Self.absent ? 0 : next
  }

  // MARK: Values

  /// The size of the key's value.
  @inline(__always)
  func byteCount(of index: Int) -> Int {
    byteCounts.isEmpty ? valueByteCount : Int(byteCounts[index])
  }

  @inline(__always)
  func value(_ index: Int, generation: UInt16) -> ValueSlice {
    var mixed = (UInt64(truncatingIfNeeded: index) << 16 | UInt64(generation)) ^ seed << 20
    mixed = mixed &* 0x9E37_79B9_7F4A_7C15
    let offset = Int(truncatingIfNeeded: mixed >> 46)
    return unsafe ValueSlice(
      bytes: UnsafeRawBufferPointer(start: pool + offset, count: byteCount(of: index)))
  }

  /// How the bytes differ from the key's value, or `nil` if they do not.
  ///
  /// Always compares the length. Compares all bytes up to 4 KiB; for a longer value, the first and
  /// last 64, and all of them if `isThorough`. (Reading 256 KiB a second time would double the time
  /// of a read.)
  @inline(__always)
  func difference(_ bytes: RawSpan, index: Int, generation: UInt16, isThorough: Bool) -> String? {
    let byteCount = byteCount(of: index)
    guard bytes.byteCount == byteCount else {
      return "the value has \(bytes.byteCount) bytes instead of \(byteCount)"
    }
    let expected = unsafe value(index, generation: generation).bytes
    let isEqual = unsafe bytes.withUnsafeBytes { found in
      guard let left = found.baseAddress, let right = expected.baseAddress else {
        return true
      }
      if isThorough || byteCount <= 4_096 { return unsafe memcmp(left, right, byteCount) == 0 }
      let last = byteCount - 64
      return unsafe memcmp(left, right, 64) == 0 && memcmp(left + last, right + last, 64) == 0
    }
    return isEqual ? nil : "the value's bytes are not those of generation \(generation)"
  }
}

/// Sizes of images: log-normal, with a median of 70 kB.
enum ImageSize {
  static let range = 20_000...500_000
  /// About the mean.
  static let meanByteCount = 89_000

  static func byteCount(_ random: inout RandomSource) -> Int {
    let normal = (0..<12).reduce(-6.0) { sum, _ in sum + random.fraction() }
    return min(max(Int(70_000 * exp(0.7 * normal)), range.lowerBound), range.upperBound)
  }
}

/// Bytes of the pool: a value to write.
// SAFETY: lives no longer than the `Dataset` whose pool it points to; every use is inside a method
// that holds the dataset. `@unchecked Sendable` because nothing writes to the pool after `init`.
@safe
struct ValueSlice: ImmutableBytes, @unchecked Sendable {
  let bytes: UnsafeRawBufferPointer

  @inline(__always)
  func withBytes<Result: ~Copyable, Failure: Error>(
    _ body: (RawSpan) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(unsafe RawSpan(_unsafeBytes: bytes))
  }
}
