public import FoundationEssentials

extension Data {
  /// A copy of the bytes of a span, for what is to outlive the closure that was given it.
  ///
  /// - Complexity: O(bytes); one copy.
  public init(copying bytes: RawSpan) {
    // SAFETY: the buffer is live for the call.
    self = unsafe bytes.withUnsafeBytes { unsafe Data($0) }
  }
}

/// Calls `body` with the eight bytes of a number, the highest first.
@inline(__always)
func withBigEndianBytes(
  of word: UInt64, _ body: (RawSpan) throws(CacheError) -> Void
) throws(CacheError) {
  // SAFETY: the buffer is live for the call.
  try unsafe withUnsafeBytes(of: word.bigEndian) { (bytes) throws(CacheError) in
    try unsafe body(RawSpan(_unsafeBytes: bytes))
  }
}
