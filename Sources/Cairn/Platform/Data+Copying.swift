public import FoundationEssentials

extension Data {
  /// Copies the bytes of a span, so that they can outlive the closure that received it.
  ///
  /// - Complexity: O(bytes), with one copy.
  public init(copying bytes: RawSpan) {
    // SAFETY: the buffer is live for the call.
    self = unsafe bytes.withUnsafeBytes { unsafe Data($0) }
  }
}
