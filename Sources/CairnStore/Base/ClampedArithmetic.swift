/// Times, durations and costs come from callers and clocks, so any number is possible.
extension FixedWidthInteger where Self: SignedInteger {
  /// The sum, or the nearest representable number.
  @inlinable
  @inline(__always)
  package func adding(clamped other: Self) -> Self {
    let (sum, overflow) = addingReportingOverflow(other)
    return overflow ? (other < 0 ? .min : .max) : sum
  }

  /// The difference, or the nearest representable number.
  @inlinable
  @inline(__always)
  package func subtracting(clamped other: Self) -> Self {
    let (difference, overflow) = subtractingReportingOverflow(other)
    return overflow ? (other < 0 ? .max : .min) : difference
  }
}
