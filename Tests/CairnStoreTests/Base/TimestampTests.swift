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

  @Test("A description is a date in UTC")
  func description() {
    for (milliseconds, text) in [
      (0, "1970-01-01T00:00:00Z"), (-1, "1969-12-31T23:59:59.999Z"),
      (1_709_164_800_000, "2024-02-29T00:00:00Z"), (951_782_400_123, "2000-02-29T00:00:00.123Z"),
      (.max, "+292278994-08-17T07:12:55.807Z"), (.min, "-292275055-05-16T16:47:04.192Z"),
    ] as [(Int64, String)] {
      #expect("\(Timestamp(millisecondsSinceEpoch: milliseconds))" == text)
    }
  }

  @Test("The longest durations stop at the ends too")
  func longest() {
    for second: Int64 in [.max, .max / 1000, .max / 1000 + 1] {
      let duration = Duration.seconds(second)
      #expect((duration * 18).milliseconds == .max)
      #expect((duration * -18).milliseconds == .min)
    }
    let end = Duration.milliseconds(Int64.max)
    #expect(end.milliseconds == .max)
    #expect((end - .nanoseconds(1)).milliseconds == .max - 1)
    #expect((end + .nanoseconds(1)).milliseconds == .max)
    let start = Duration.milliseconds(Int64.min)
    #expect(start.milliseconds == .min)
    #expect((start + .nanoseconds(1)).milliseconds == .min)
    #expect((start - .nanoseconds(1)).milliseconds == .min)
  }

  @Test("A duration of milliseconds advances by that much")
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
