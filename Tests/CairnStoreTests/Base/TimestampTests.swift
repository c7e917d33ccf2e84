import CairnStore
import Testing

@Suite("Timestamps")
struct TimestampTests {
  @Test("Advancing beyond either end stops at the end")
  func saturation() {
    let late = Timestamp(millisecondsSinceEpoch: .max - 1)
    #expect(late.advanced(by: .seconds(1)) == .distantFuture)
    #expect(late.advanced(by: .seconds(Int64.max)) == .distantFuture)
    let early = Timestamp(millisecondsSinceEpoch: .min + 1)
    #expect(early.advanced(by: .seconds(-1)).millisecondsSinceEpoch == .min)
    #expect(early.advanced(by: .seconds(Int64.min)).millisecondsSinceEpoch == .min)
  }

  @Test("A duration of milliseconds advances by as much")
  func milliseconds() {
    let time = Timestamp(millisecondsSinceEpoch: 1000)
    #expect(time.advanced(by: .milliseconds(1234)).millisecondsSinceEpoch == 2234)
    #expect(time.advanced(by: .milliseconds(-1234)).millisecondsSinceEpoch == -234)
  }

  @Test(
    "Half a millisecond is rounded down", arguments: [(1500, 1), (500, 0), (-500, -1), (-1500, -2)])
  func rounding(microseconds: Int64, milliseconds: Int64) {
    #expect(Duration.microseconds(microseconds).milliseconds == milliseconds)
  }
}
