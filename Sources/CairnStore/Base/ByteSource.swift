/// A type whose values are contiguous bytes in memory and can serve as keys and values.
///
/// `RawSpan`, `[UInt8]`, slices of `[UInt8]` and strings (as UTF-8) conform, and the module `Cairn`
/// adds `Data`. None of these conformances copies the bytes.
public protocol ByteSource: ~Copyable, ~Escapable {
  /// Calls `body` with the bytes, which are valid only until `body` returns.
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
  /// Calls `body` with the elements, without copying them.
  @inlinable @inline(__always)
  public func withBytes<Result: ~Copyable, Failure: Error>(
    _ body: (RawSpan) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(unsafe span.bytes)
  }
}

extension ArraySlice<UInt8>: ByteSource {
  /// Calls `body` with the elements of the slice, without copying them.
  @inlinable @inline(__always)
  public func withBytes<Result: ~Copyable, Failure: Error>(
    _ body: (RawSpan) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(unsafe span.bytes)
  }
}

extension String: ByteSource {
  /// Calls `body` with the UTF-8 of the text, without copying it.
  @inlinable @inline(__always)
  public func withBytes<Result: ~Copyable, Failure: Error>(
    _ body: (RawSpan) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(unsafe utf8.span.bytes)
  }
}

extension Substring: ByteSource {
  /// Calls `body` with the UTF-8 of the substring, without copying it.
  @inlinable @inline(__always)
  public func withBytes<Result: ~Copyable, Failure: Error>(
    _ body: (RawSpan) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(unsafe utf8.span.bytes)
  }
}

/// Bytes that never change and stay in place as long as a copy of the value exists. `withBytes`
/// takes no lock and runs no caller code.
@usableFromInline
package protocol ImmutableBytes: ByteSource, Sendable {}

extension [UInt8]: ImmutableBytes {}
extension ArraySlice<UInt8>: ImmutableBytes {}
extension String: ImmutableBytes {}
extension Substring: ImmutableBytes {}
