/// Calls `body` with the eight bytes of a number, most significant first.
@inline(__always)
func withBigEndianBytes(
  of word: UInt64, _ body: (RawSpan) throws(StoreError) -> Void
) throws(StoreError) {
  // SAFETY: the buffer is live for the call.
  try unsafe withUnsafeBytes(of: word.bigEndian) { (bytes) throws(StoreError) in
    try unsafe body(RawSpan(_unsafeBytes: bytes))
  }
}
