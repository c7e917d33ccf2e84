extension Timestamp: CustomStringConvertible {
  /// The point in UTC, in ISO 8601 format: `2026-01-31T23:59:59Z`. Milliseconds appear only if they
  /// are not zero.
  public var description: String {
    let (day, millisecond) = floorDivide(millisecondsSinceEpoch, by: 86_400_000)
    let date = civilDate(ofDay: day)
    var text = date.year > 9999 ? "+\(date.year)" : padded(date.year, to: 4)
    text += "-\(padded(date.month, to: 2))-\(padded(date.day, to: 2))"
    text += "T\(padded(millisecond / 3_600_000, to: 2))"
    text += ":\(padded(millisecond / 60_000 % 60, to: 2))"
    text += ":\(padded(millisecond / 1000 % 60, to: 2))"
    if millisecond % 1000 != 0 { text += ".\(padded(millisecond % 1000, to: 3))" }
    return text + "Z"
  }
}

/// The Gregorian date of a day, counted from 1970-01-01.
///
/// Years are counted from March, so that the leap day is the last of its year and the lengths of
/// the months before it follow one linear rule: 153 days for five months.
private func civilDate(ofDay day: Int64) -> (year: Int64, month: Int64, day: Int64) {
  let daysInEra: Int64 = 146_097
  // 719,468 days lie between 0000-03-01 and 1970-01-01.
  let (era, dayOfEra) = floorDivide(day + 719_468, by: daysInEra)
  let leapDays = dayOfEra / 1460 - dayOfEra / 36_524 + dayOfEra / (daysInEra - 1)
  let yearOfEra = (dayOfEra - leapDays) / 365
  let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
  let monthFromMarch = (5 * dayOfYear + 2) / 153
  let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
  return (
    year: era * 400 + yearOfEra + (month <= 2 ? 1 : 0), month: month,
    day: dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
  )
}

private func floorDivide(_ value: Int64, by divisor: Int64) -> (Int64, Int64) {
  let (quotient, remainder) = value.quotientAndRemainder(dividingBy: divisor)
  return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
}

private func padded(_ number: Int64, to width: Int) -> String {
  let digits = String(number.magnitude)
  let zeros = String(repeating: "0", count: max(0, width - digits.count))
  return (number < 0 ? "-" : "") + zeros + digits
}
