public import CairnEssentials

extension Data {
  /// Copies the bytes of a span. The copy stays valid after the closure that received the span
  /// returns.
  ///
  /// - Complexity: O(bytes); one copy.
  public init(copying bytes: RawSpan) {
    // SAFETY: the buffer is live for the call.
    self = unsafe bytes.withUnsafeBytes { unsafe Data($0) }
  }
}
