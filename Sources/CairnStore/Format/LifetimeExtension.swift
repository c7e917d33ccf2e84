/// A later end for the lifetime of a put, and the location of the extension's record.
package struct LifetimeExtension: Sendable, Hashable {
  /// The later end, in milliseconds since the Unix epoch.
  package var expires: Int64
  /// `.none` if the record's location is not known.
  package var location: Location
  /// The size of the record.
  package var byteCount: Int

  package init(expires: Int64, location: Location, byteCount: Int) {
    self.expires = expires
    self.location = location
    self.byteCount = byteCount
  }
}
