/// When an entry may expire, if that is known without reading its record.
package struct Deadline: Sendable, Equatable {
  /// In milliseconds since the Unix epoch. The entry has not expired before this time.
  package var time: Int64
  /// Whether it expires at exactly this time. If not, its record and its last access decide.
  package var isExact: Bool

  package init(time: Int64, isExact: Bool) {
    self.time = time
    self.isExact = isExact
  }

  /// What a deadline means for an entry at a time not before it.
  package enum State: Sendable {
    /// It has expired.
    case passed
    /// It expires within the same unit of time.
    case passing
    /// Its record and its last access decide.
    case inexact
  }
}
