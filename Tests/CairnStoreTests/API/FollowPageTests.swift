import CairnEssentials
import CairnLibC
import CairnStore
import FuzzSupport
import Testing

@Suite("Hostile announcements to followers")
final class FollowPageTests {
  private let directory: TemporaryDirectory
  private let queue = ManualBackgroundQueue()

  init() throws { directory = try TemporaryDirectory() }

  @Test("A page with absurd words does no harm", arguments: [UInt8(0), 0x7F, 0xFF])
  func absurdPage(byte: UInt8) throws {
    let writer = try Store.announcing(directory.store, background: queue)
    for number in 0..<100 { try writer.setValue("value", forKey: "key \(number)") }
    for offset in stride(from: 64, to: 96, by: 8) {
      let page = try Data(contentsOf: URL(filePath: directory.store + "/FOLLOW"))
      var changed = page
      for index in offset..<(offset + 8) { changed[index] = byte }
      let path = directory("copy \(offset)")
      try Image(of: directory.store).write(to: path)
      try changed.write(to: URL(filePath: path + "/FOLLOW"))
      // The page is used as it is, or refused with an error: never a trap, and never a wrong value.
      guard let follower = try? Store.following(path) else { continue }
      if let value = try? follower.text("key 1") { #expect(value == "value") }
      try? follower.catchUp()
      _ = try? follower.count()
      try? follower.close()
    }
    try writer.close()
  }

  @Test("A position beyond the end of a file is refused, whatever the last record claims")
  func positionBeyondFile() async {
    await #expect(processExitsWith: .success) {
      for wasLonger in [false, true] {
        let directory = try TemporaryDirectory()
        let queue = ManualBackgroundQueue()
        let writer = try Store.announcing(directory.store, background: queue)
        try writer.setValue("value", forKey: "key")
        let path = directory("copy")
        try Image(of: directory.store).write(to: path)
        let follower = try Store.following(path, .manual)
        if wasLonger {
          // The follower looks at the whole file, and then finds another manifest.
          try writer.setValue("value", forKey: "later")
          try Image(of: directory.store).write(to: path)
          try follower.catchUp()
          guard try follower.text("later") == "value" else {
            throw SupportError(call: "nothing was appended", number: 0)
          }
          try writer.checkpoint()
          try Image(of: directory.store).write(to: path)
        }
        let image = try Image(of: path)
        let name = try #require(image.segmentNames.first)
        let last = try #require(image.records(in: name).last)
        let file = image.files[name] ?? []
        let header = try SegmentHeader(
          decoding: file.rawSpan.extracting(0..<SegmentHeader.byteCount), file: name)
        // Only the page with the head of the forged record is in the file.
        var record = RecordHeader(kind: .put)
        record.keyByteCount = 6
        record.valueByteCount = 30_000
        record.sequenceDelta = last.header.sequenceDelta + 1
        var bytes = [UInt8](repeating: 0x61, count: record.byteCount)
        bytes.withMutableSpan { span in
          record.encodeFields(into: &span)
          record.seal(&span, at: last.range.upperBound, seed: header.recordSeed)
        }
        try check("truncate", unsafe truncate("\(path)/\(name)", 4096))
        guard try follower.text("key") == "value" else {
          throw SupportError(call: "another value", number: 0)
        }
        try overwriteFile("\(path)/\(name)", Array(bytes.prefix(64)), at: last.range.upperBound)
        var position: [UInt8] = []
        position.append(
          littleEndian: LogPosition(
            id: header.id, end: last.range.upperBound + record.byteCount
          ).rawValue)
        try overwriteFile(
          "\(path)/\(FileName.followPage)", position, at: FollowPageLayout.positionOffset)
        let error = storeError {
          try follower.catchUp()
          _ = try follower.value(forKey: "aaaaaa")
        }
        guard error?.corruption?.cause == .fileTooShort else {
          throw SupportError(call: "\(String(describing: error))", number: 0)
        }
        try? follower.close()
        try writer.close()
      }
    }
  }
}
