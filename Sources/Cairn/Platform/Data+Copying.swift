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
