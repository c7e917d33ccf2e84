extension [UInt8] {
  /// A copy of the bytes of a span, for what is to outlive the closure that was given it.
  ///
  /// - Complexity: O(bytes); one copy.
  public init(copying bytes: RawSpan) { self = bytes.copied() }
}
