/// Bytes that lie side by side in memory: what keys and values are given as.
///
/// `RawSpan` is the core; `[UInt8]`, slices and strings (their UTF-8) are as good, and `Cairn`
/// adds `Data`. Nothing is copied to make the span.
public protocol ByteSource: ~Copyable, ~Escapable {
  /// Calls `body` with the bytes, which are valid only until it returns.
  func withBytes<Result: ~Copyable, Failure: Error>(
    _ body: (RawSpan) throws(Failure) -> Result
  ) throws(Failure) -> Result
}

extension RawSpan: ByteSource {
  /// Calls `body` with the span itself.
  @inlinable @inline(__always)
  public func withBytes<Result: ~Copyable, Failure: Error>(
    _ body: (RawSpan) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(self)
  }
}

// SAFETY: `Span.bytes` is marked unsafe only because elements could have padding; `UInt8` has none.

extension [UInt8]: ByteSource {
  /// Calls `body` with the elements in place; nothing is copied.
  @inlinable @inline(__always)
  public func withBytes<Result: ~Copyable, Failure: Error>(
    _ body: (RawSpan) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(unsafe span.bytes)
  }
}

extension ArraySlice<UInt8>: ByteSource {
  /// Calls `body` with the elements of the slice in place; nothing is copied.
  @inlinable @inline(__always)
  public func withBytes<Result: ~Copyable, Failure: Error>(
    _ body: (RawSpan) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(unsafe span.bytes)
  }
}

extension String: ByteSource {
  /// Calls `body` with the UTF-8 of the text in place; nothing is copied.
  @inlinable @inline(__always)
  public func withBytes<Result: ~Copyable, Failure: Error>(
    _ body: (RawSpan) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(unsafe utf8.span.bytes)
  }
}

extension Substring: ByteSource {
  /// Calls `body` with the UTF-8 of the part in place; nothing is copied.
  @inlinable @inline(__always)
  public func withBytes<Result: ~Copyable, Failure: Error>(
    _ body: (RawSpan) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(unsafe utf8.span.bytes)
  }
}
