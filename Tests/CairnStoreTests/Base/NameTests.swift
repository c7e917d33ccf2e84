import CairnRepair
import CairnStore
import Testing

@Suite("Names that programs rely on")
struct NameTests {
  @Test("Raw values are the names of the cases; the description has the words")
  func rawValues() {
    for cause in ["badValue", "lostRecords", "unfinishedBatch"] {
      #expect(Corruption.Cause(rawValue: cause) != nil)
    }
    let corruption = Corruption(file: "seg", offset: 8, cause: .badValue)
    #expect(corruption.code == "badValue")
    #expect(corruption.description == "seg at offset 8: the value does not match its checksum")
    let error = StoreError.noSpace(path: "/d", neededByteCount: 1, limit: .disk)
    #expect(error.description == "/d: no room for 1 more bytes: the filesystem is full")
  }
}
