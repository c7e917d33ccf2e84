/// A later end for the lifetime of a put, and the location of its record.
package struct LifetimeExtension: Sendable, Hashable {
  /// In milliseconds.
  package var expires: Int64
  /// `.none` if the record is no longer known.
  package var location: Location
  /// The size of the record.
  package var byteCount: Int

  package init(expires: Int64, location: Location, byteCount: Int) {
    self.expires = expires
    self.location = location
    self.byteCount = byteCount
  }
}
