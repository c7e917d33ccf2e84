/// A later end that the lifetime of a put was given, and where the record is that says so.
package struct LifetimeExtension: Sendable, Hashable {
  /// In milliseconds.
  package var expires: Int64
  /// `.none` where the record is not known any more.
  package var location: Location
  /// The size of the record.
  package var byteCount: Int

  package init(expires: Int64, location: Location, byteCount: Int) {
    self.expires = expires
    self.location = location
    self.byteCount = byteCount
  }
}
