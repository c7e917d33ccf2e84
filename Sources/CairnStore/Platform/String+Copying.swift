extension String {
  /// Copies the bytes of a span as text. Returns `nil` if the bytes are not valid UTF-8.
  ///
  /// - Complexity: O(bytes); one copy.
  public init?(copying bytes: RawSpan) {
    // SAFETY: the buffer is live for the call.
    let text = unsafe bytes.withUnsafeBytes { buffer in
      unsafe String(validating: buffer, as: UTF8.self)
    }
    guard let text else { return nil }
    self = text
  }
}
