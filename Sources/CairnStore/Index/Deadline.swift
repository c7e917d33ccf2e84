/// When an entry may expire, if that is known without reading its record.
package struct Deadline: Sendable, Equatable {
  /// In milliseconds since the Unix epoch. The entry has not expired before this time.
  package var time: Int64
  /// Whether the entry expires at exactly this time. If not, its record and its last access decide.
  package var isExact: Bool

  package init(time: Int64, isExact: Bool) {
    self.time = time
    self.isExact = isExact
  }

  /// The state of an entry whose deadline has come.
  package enum State: Sendable {
    /// The entry has expired.
    case passed
    /// The entry expires within the current unit of time.
    case passing
    /// The entry's record and last access decide.
    case inexact
  }
}
