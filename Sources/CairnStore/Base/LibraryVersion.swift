/// The only place that has the version of the library and its commands.
package enum LibraryVersion {
  package static let text = "0.1.0"
  /// The day of the version, in the manual.
  package static let date = "November 27, 2026"
}
