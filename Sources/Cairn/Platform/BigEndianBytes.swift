/// Calls `body` with the eight bytes of a number, most significant first.
@inline(__always)
func withBigEndianBytes(
  of word: UInt64, _ body: (RawSpan) throws(CacheError) -> Void
) throws(CacheError) {
  // SAFETY: the buffer is live for the call.
  try unsafe withUnsafeBytes(of: word.bigEndian) { (bytes) throws(CacheError) in
    try unsafe body(RawSpan(_unsafeBytes: bytes))
  }
}
