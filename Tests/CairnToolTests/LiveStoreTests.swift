import Cairn
import CairnLibC
import Testing

@Suite("A store that another process has open")
struct LiveStoreTests {
  let directory: TemporaryDirectory
  let open: Store
  var store: String { directory("store") }

  init() throws {
    directory = try TemporaryDirectory()
    open = try Store(path: directory("store"))
    try open.setValue("value", forKey: "key", durability: .process)
    try open.setValue("other", forKey: "folder/other", durability: .process)
  }

  @Test(arguments: [
    (["get", "key"], "value"), (["info", "key"], "known to the other process"),
    (["info", "key", "--json"], "\"accessed\": null"), (["keys"], "folder/other\nkey\n"),
    (["stats"], "open in another process"), (["verify"], "2 sound records, "),
    (["verify", "--rate", "10M"], "2 sound records, "), (["dump"], "\"accessed\": null"),
    (["export"], "exported 2 files"), (["backup"], "the backup has 2 entries"),
  ])
  func `what reads works beside it, and says so`(words: [String], text: String) throws {
    var arguments = [words[0], store] + words.dropFirst()
    if ["export", "backup"].contains(words[0]) { arguments.append(directory("out")) }
    let outcome = try cairn(bytes: arguments.map { Array($0.utf8) })
    #expect(outcome.status == 0, "\(outcome.errors)")
    #expect(outcome.text.contains(text))
    #expect(outcome.errors.hasPrefix("cairn: \(words[0]): process \(getpid()) ("))
    #expect(outcome.errors.contains(", running since 2"))
    #expect(outcome.errors.hasSuffix(") has the store open; this is the store as it is now\n"))
    if words[0] == "backup" {
      #expect(try Store(readingAt: directory("out")).value(forKey: "key") == Array("value".utf8))
    }
    // The next command sees what is written meanwhile.
    try open.setValue("later", forKey: "key", durability: .process)
    #expect(try cairn("get", store, "key").text == "later")
    try open.close()
  }

  @Test func `verify tells of damage in the same form as without it`() throws {
    let names = try ChildProcess.run("/bin/ls", [Array(store.utf8)]).lines
    for name in names where name.hasPrefix("seg-") {
      let bytes = try directory.contents("store/\(name)")
      guard let place = bytes.firstRange(of: Array("value".utf8)) else { continue }
      // The file is changed in place, because it is mapped.
      let words = ["of=\(store)/\(name)", "bs=1", "seek=\(place.lowerBound)", "conv=notrunc"]
      _ = try ChildProcess.run("/bin/dd", words.map { Array($0.utf8) }, input: [0])
    }
    let outcome = try cairn("verify", store, "--json")
    #expect(outcome.status == 3)
    #expect(outcome.text.contains(#""cause": "badValue", "keyCount": 1, "keys": [{"key": "key"}]"#))
    try? open.close()
  }
}
