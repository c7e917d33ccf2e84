/// The only definition of the version of the library and its commands.
package enum LibraryVersion {
  package static let text = "0.1.0"
  /// The release date, as the manual shows it.
  package static let date = "November 27, 2026"
}
