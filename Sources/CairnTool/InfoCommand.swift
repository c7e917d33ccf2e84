import Cairn
import CommandText

/// `info`: shows the attributes of one key.
enum InfoCommand {
  static func run(_ invocation: Invocation, on console: Console) throws {
    let location = try invocation.store(at: 0)
    let key = try invocation.key(at: 1)
    let isFound = try location.read(on: console) { store in
      guard let entry = try store.pinnedEntry(forKey: key.rawSpan, part: .head) else {
        return false
      }
      let (info, metadata) = (store.info(of: entry), entry.metadata.copied)
      let tags = (try? CacheMetadata(decoding: metadata.rawSpan, wantsRest: true))?.tags ?? []
      let isLive = store.isFollowing
      if invocation.has(.json) {
        let names = tags.map { JSON.string(String(decoding: $0, as: UTF8.self)) }
        try console.print(
          JSON.object(
            [JSON.member("key", key)]
              + EntryText.members(of: info, metadata: metadata, isLive: isLive)
              + [("tags", .array(names))]
          ).text)
        return true
      }
      let rows = [
        ("key", try invocation.keyFormat().text(of: key)),
        ("version", "\(info.version)"),
        ("value", DisplayText.exactSize(info.valueByteCount)),
        ("metadata", Self.text(of: metadata)),
        ("tags", Self.list(tags)),
        ("written", info.written.description),
        ("last access", isLive ? "known to the other process" : info.accessed.description),
        ("expires", info.expires?.description ?? "-"),
        ("idle limit", info.idleLimit.map { DisplayText.shortDuration($0) } ?? "-"),
        ("cost", info.givenCost.map { "\($0)" } ?? "-"),
      ]
      for (label, text) in rows {
        try console.tell(
          label + String(repeating: " ", count: 13 - label.count) + text, indent: 13)
      }
      return true
    }
    if !isFound { throw ValueCommands.notFound(key) }
  }

  private static func text(of metadata: [UInt8]) -> String {
    metadata.isEmpty
      ? "-" : "\(DisplayText.line(metadata)) (\(DisplayText.exactSize(metadata.count)))"
  }

  private static func list(_ tags: [[UInt8]]) -> String {
    tags.isEmpty ? "-" : tags.map { DisplayText.line($0) }.joined(separator: ", ")
  }
}
