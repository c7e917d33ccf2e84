/// The frequency of each latency, accurate to half a percent, in constant space.
///
/// Buckets grow with the value (the idea of HdrHistogram, Tene): up to 255 ns, each nanosecond has
/// a bucket; above, every doubling is divided into 128. The middle of a bucket represents it, so
/// the error is at most 1/256.
struct LatencyHistogram: Sendable, Equatable {
  private static let bitCount = 7
  private static let subBucketCount = 1 << bitCount
  private static let bucketCount = (64 - bitCount - 1) * subBucketCount + 2 * subBucketCount

  private var counts = [UInt64](repeating: 0, count: bucketCount)
  private(set) var count: UInt64 = 0

  @inline(__always)
  mutating func record(_ nanoseconds: UInt64) {
    counts[Self.bucket(of: nanoseconds)] += 1
    count += 1
  }

  mutating func merge(_ other: LatencyHistogram) {
    for index in counts.indices { counts[index] += other.counts[index] }
    count += other.count
  }

  /// The smallest recorded value that at least this share of all values does not exceed. 0 if
  /// nothing was recorded.
  func percentile(_ share: Double) -> UInt64 {
    let rank = max(1, min(count, UInt64((share * Double(count)).rounded(.up))))
    var seen: UInt64 = 0
    for (index, bucketCount) in counts.enumerated() where bucketCount > 0 {
      seen += bucketCount
      if seen >= rank { return Self.middle(ofBucket: index) }
    }
    return 0
  }

  @inline(__always)
  private static func bucket(of value: UInt64) -> Int {
    let shift = max(0, 63 - bitCount - value.leadingZeroBitCount)
    return shift * subBucketCount + Int(value >> UInt64(shift))
  }

  private static func middle(ofBucket index: Int) -> UInt64 {
    guard index >= 2 * subBucketCount else { return UInt64(index) }
    let shift = UInt64(index / subBucketCount - 1)
    let low = UInt64(index % subBucketCount + subBucketCount) << shift
    return low + (1 << shift) / 2
  }
}

/// Encoded as pairs of bucket and count, because few buckets are used.
extension LatencyHistogram: Codable {
  init(from decoder: any Decoder) throws {
    var container = try decoder.unkeyedContainer()
    while !container.isAtEnd {
      let bucket = try container.decode(Int.self)
      let bucketCount = try container.decode(UInt64.self)
      guard counts.indices.contains(bucket) else {
        throw DecodingError.dataCorruptedError(
          in: container, debugDescription: "bucket \(bucket)")
      }
      counts[bucket] += bucketCount
      count += bucketCount
    }
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.unkeyedContainer()
    for (bucket, bucketCount) in counts.enumerated() where bucketCount > 0 {
      try container.encode(bucket)
      try container.encode(bucketCount)
    }
  }
}
