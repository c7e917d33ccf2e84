extension [UInt8] {
  /// Copies the bytes of a span, so that you can use them after the closure that received it
  /// returns.
  ///
  /// - Complexity: O(bytes); one copy.
  public init(copying bytes: RawSpan) { self = bytes.copied() }
}
