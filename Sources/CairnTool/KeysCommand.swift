import Cairn
import CommandText

/// `keys`: the keys of a store, with a line or an object for each.
enum KeysCommand {
  static func run(_ invocation: Invocation, on console: Console) throws {
    let location = try invocation.store(at: 0)
    let prefix = invocation.options[.prefix] ?? []
    try location.read(on: console) { store in
      var damage: StoreError?
      let keys = try store.sortedKeys(prefix: prefix, passingOver: &damage)
      if let damage { console.report(CommandFailure(damage)) }
      if invocation.has(.json) {
        try printObjects(keys, in: store, on: console)
      } else {
        for key in keys {
          if !invocation.has(.long) {
            try console.print(DisplayText.line(key))
          } else if let info = try info(key, in: store, on: console) {
            let expires = info.expires?.description ?? "-"
            let columns = [
              String(info.valueByteCount), info.written.description, expires, DisplayText.line(key),
            ]
            try console.print(columns.joined(separator: "\t"))
          }
        }
      }
    }
  }

  /// Prints an array with an object on each line: a store may have more keys than fit in memory
  /// as objects.
  private static func printObjects(_ keys: [[UInt8]], in store: Store, on console: Console) throws {
    var previous: String?
    for key in keys {
      guard let info = try info(key, in: store, on: console) else { continue }
      let object = JSON.object([
        JSON.member(key: key), ("valueBytes", .integer(info.valueByteCount)),
        ("written", .string(info.written.description)),
        ("expires", .optional(info.expires?.description)),
      ])
      try console.print(previous.map { $0 + "," } ?? "[")
      previous = "  " + object.text
    }
    try console.print(previous ?? "[")
    try console.print("]")
  }

  /// What the store knows about a key; `nil` if the record is damaged, which is reported, or has
  /// expired since the keys were listed.
  private static func info(
    _ key: [UInt8], in store: Store, on console: Console
  ) throws -> EntryInfo? {
    do throws(StoreError) {
      return try store.info(forKey: key)
    } catch {
      guard case .corrupt = error else { throw error }
      console.report(CommandFailure(error))
      return nil
    }
  }
}
