/// The moment from which a trim counts an entry's age.
package enum AgeBasis: Sendable, Hashable {
  /// The last read or write.
  case access
  /// The write.
  case write
}
