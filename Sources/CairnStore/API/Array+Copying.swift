extension [UInt8] {
  /// Copies the bytes of a span. The copy stays valid after the closure that received the span
  /// returns.
  ///
  /// - Complexity: O(bytes); one copy.
  public init(copying bytes: RawSpan) { self = bytes.copied() }
}
