/// When an entry may expire, as far as it is known without a look at its record.
package struct Deadline: Sendable, Equatable {
  /// In milliseconds since the Unix epoch. The entry has not expired before this time.
  package var time: Int64
  /// Whether it expires at just this time. Where not, its record and its last access tell.
  package var isExact: Bool

  package init(time: Int64, isExact: Bool) {
    self.time = time
    self.isExact = isExact
  }

  /// What a deadline says of an entry at some time that is not before it.
  package enum State: Sendable {
    /// It has expired.
    case passed
    /// It expires within the same unit of time.
    case passing
    /// Its record and its last access tell.
    case inexact
  }
}
