import Cairn
import Foundation
import Testing

@Suite("Bridges to Foundation")
struct FoundationBridgeTests {
  @Test("Data can be a key and a value")
  func data() throws {
    let path = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString).path
    defer { try? FileManager.default.removeItem(atPath: path) }
    let store = try Store(path: path)
    let key = Data([0, 255, 10])
    let value = Data((0..<100_000).map { UInt8(truncatingIfNeeded: $0) })
    try store.setValue(value, forKey: key)
    #expect(try store.value(forKey: key) == [UInt8](value))
    // A slice has its own indices, and an empty one has no memory.
    try store.setValue(value[500..<600], forKey: value[3..<9])
    #expect(try store.value(forKey: [3, 4, 5, 6, 7, 8]) == [UInt8](value[500..<600]))
    try store.setValue(Data(), forKey: "empty")
    #expect(try store.value(forKey: "empty") == [])
  }

  @Test(
    "A date and its timestamp are the same millisecond",
    arguments: [0, 1, -1, 1_700_000_000_123, -62_135_596_800_000])
  func date(milliseconds: Int64) {
    let timestamp = Timestamp(millisecondsSinceEpoch: milliseconds)
    #expect(Timestamp(Date(timestamp)) == timestamp)
  }

  @Test("Dates beyond all timestamps are clamped")
  func clampedDate() {
    #expect(Timestamp(Date(timeIntervalSince1970: .infinity)) == .distantFuture)
    #expect(
      Timestamp(Date(timeIntervalSince1970: -1e300))
        == Timestamp(millisecondsSinceEpoch: .min))
    // No entry lives for ever by mistake.
    #expect(
      Timestamp(Date(timeIntervalSince1970: .nan)) == Timestamp(millisecondsSinceEpoch: .min))
  }

  @Test("localizedDescription says what the error says")
  func localized() {
    let store = StoreError.locked(path: "/a", inThisProcess: true)
    #expect((store as any Error).localizedDescription == "\(store)")
  }
}
