public import CairnEssentials
public import CairnStore

extension Timestamp {
  /// The millisecond nearest to a date, or the earliest or latest one if the date is out of range.
  /// The earliest one if the date is not a number, so that no entry lives for ever by mistake.
  public init(_ date: Date) {
    let milliseconds = (date.timeIntervalSince1970 * 1000).rounded()
    self.init(
      millisecondsSinceEpoch: Int64(exactly: milliseconds) ?? (milliseconds > 0 ? .max : .min))
  }
}

extension Date {
  /// The date of a timestamp.
  public init(_ timestamp: Timestamp) {
    self.init(timeIntervalSince1970: Double(timestamp.millisecondsSinceEpoch) / 1000)
  }
}
