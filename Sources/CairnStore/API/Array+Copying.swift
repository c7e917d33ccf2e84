extension [UInt8] {
  /// Copies the bytes of a span, so that they can outlive the closure that received it.
  ///
  /// - Complexity: O(bytes); one copy.
  public init(copying bytes: RawSpan) { self = bytes.copied() }
}
