import Cairn
import CommandText

/// `keys`: the keys of a store, with a line or an object for each.
enum KeysCommand {
  static func run(_ invocation: Invocation, on console: Console) throws {
    let location = try invocation.store(at: 0)
    let prefix = try invocation.prefix()
    let format = try invocation.keyFormat()
    let limit = try invocation.positiveNumber(of: .limit)
    let isTree = invocation.has(.tree)
    if isTree, let other = [Option.long, .json].first(where: invocation.has) {
      throw invocation.usage("--tree cannot be combined with --\(other.rawValue)")
    }
    if isTree, format == .base64 {
      throw invocation.usage("--tree cannot be combined with --key-format base64")
    }
    try location.read(on: console) { store in
      var damage: StoreError?
      let all = try store.sortedKeys(prefix: prefix, passingOver: &damage)
      if let damage { console.report(CommandFailure(damage)) }
      if isTree { return try printTree(KeyTree(keys: all, limit: limit), on: console) }
      let keys = all.prefix(limit ?? all.count)
      if invocation.has(.json) {
        try printObjects(keys, in: store, on: console)
      } else if invocation.has(.long) {
        try printRows(keys, format, in: store, on: console)
      } else {
        for key in keys { try console.print(format.text(of: key)) }
      }
      if keys.count < all.count {
        try console.finish()
        console.note("\(DisplayText.count(all.count - keys.count, "more key"))", style: nil)
      }
    }
  }

  private static func printTree(_ tree: KeyTree, on console: Console) throws {
    try tree.forEachLine { line in
      let indent = String(repeating: "  ", count: line.depth)
      if line.name.isEmpty {
        try console.print("\(indent)(\(DisplayText.count(line.count)) more)")
      } else {
        let keys = line.count > 1 ? "  (\(DisplayText.count(line.count, "key")))" : ""
        try console.print(indent + DisplayText.line(Array(line.name)) + keys)
      }
    }
  }

  /// Prints columns under a header for people, and fields separated by tabs for programs.
  private static func printRows(
    _ keys: ArraySlice<[UInt8]>, _ format: KeyFormat, in store: Store, on console: Console
  ) throws {
    // A size has at most 11 characters, and a time 24.
    let widths = [11, 20, 24]
    let isNarrow = console.reportWidth.map { $0 < 70 } ?? false
    func show(_ cells: [String], _ key: String, style: Style? = nil) throws {
      guard console.outputIsTerminal else {
        return try console.print((cells + [key]).joined(separator: "\t"))
      }
      if isNarrow {
        try console.tell(cells.joined(separator: "  "), style: style)
        return try console.print(console.painter("    " + key, style))
      }
      let columns = zip(cells, widths).map { cell, width in
        let gap = String(repeating: " ", count: max(0, width - cell.count))
        return width == widths[0] ? gap + cell : cell + gap
      }
      try console.print(console.painter(columns.joined(separator: "  ") + "  " + key, style))
    }
    if console.outputIsTerminal, !keys.isEmpty {
      try show(["bytes", "written", "expires"], "key", style: .heading)
    }
    for key in keys {
      guard let info = try info(key, in: store, on: console) else { continue }
      let expires = info.expires?.description ?? "-"
      try show(
        [String(info.valueByteCount), info.written.description, expires], format.text(of: key))
    }
  }

  /// Prints an array with an object on each line: a store may have more keys than fit in memory as
  /// objects.
  private static func printObjects(
    _ keys: ArraySlice<[UInt8]>, in store: Store, on console: Console
  ) throws {
    var previous: String?
    for key in keys {
      guard let info = try info(key, in: store, on: console) else { continue }
      let object = JSON.object([
        JSON.member("key", key), ("valueBytes", .integer(info.valueByteCount)),
        ("written", .string(info.written.description)),
        ("expires", .optional(info.expires?.description)),
      ])
      try console.print(previous.map { $0 + "," } ?? "[")
      previous = "  " + object.text
    }
    try console.print(previous ?? "[")
    try console.print("]")
  }

  /// The attributes of a key. `nil` if the key has expired since the keys were listed, or if the
  /// record is damaged, which is reported.
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
