public import CairnEssentials
public import CairnStore

extension Data: ByteSource {
  /// Calls `body` with the bytes, without copying them.
  public func withBytes<Result: ~Copyable, Failure: Error>(
    _ body: (RawSpan) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(bytes)
  }
}
