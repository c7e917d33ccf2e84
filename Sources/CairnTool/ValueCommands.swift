import Cairn
import CommandText

/// `put`, `get` and `delete`: one value at a time.
enum ValueCommands {
  /// Stores a value, which is on disk when this returns.
  static func put(_ invocation: Invocation, on console: Console) throws {
    let location = try invocation.store(at: 0)
    let key = try invocation.key(at: 1)
    let configuration = StoreConfiguration()
    let options = EntryOptions(
      lifetime: try invocation.duration(of: .lifetime).map { .after($0) },
      metadata: invocation.options[.metadata])
    // Read the value first: while this process waits for the value, others can still use the store.
    let value: [UInt8]
    if invocation.operands.count > 2 {
      value = invocation.operands[2]
    } else {
      if Terminal.isTerminal(Descriptor.standardInput.number) {
        console.note("type the value; Ctrl-D on its own line ends it", style: nil)
      }
      value = try standardInput(byteLimit: configuration.valueByteLimit)
    }
    let mayReplace = !invocation.has(.ifAbsent)
    try location.write(configuration) { store in
      // A damaged entry may be replaced, but does not count as absent.
      let existed = mayReplace ? try? store.contains(key) : try store.contains(key)
      let isStored = mayReplace || existed == false
      if isStored { try store.setValue(value, forKey: key, options: options) }
      if invocation.has(.json) {
        let result = [
          ("existed", existed.map { JSON.bool($0) } ?? .null), ("stored", .bool(isStored)),
        ]
        try console.print(JSON.object(try members(key, in: store) + result).text)
      }
      if !isStored {
        throw CommandFailure(.keyState, "\(DisplayText.line(key)): the key exists")
      }
    }
  }

  /// The version and the size of an entry, as far as they are known.
  private static func members(_ key: [UInt8], in store: Store) throws -> [(String, JSON)] {
    let info = try? store.info(forKey: key)
    return [
      JSON.member("key", key),
      ("version", info.map { .integer(Int(clamping: $0.version)) } ?? .null),
      ("valueBytes", info.map { .integer($0.valueByteCount) } ?? .null),
    ]
  }

  private static func standardInput(byteLimit: Int) throws -> [UInt8] {
    do {
      if let value = try FileContents.read(.standardInput, expecting: 0, byteLimit: byteLimit) {
        return value
      }
    } catch {
      throw CommandFailure(.failure, "standard input: \(error.reason)")
    }
    throw CommandFailure(
      .failure, "standard input: more than \(DisplayText.count(byteLimit)) bytes, the limit")
  }

  /// Writes a value's bytes to standard output, or shows a counter or the whole entry.
  static func get(_ invocation: Invocation, on console: Console) throws {
    let location = try invocation.store(at: 0)
    let key = try invocation.key(at: 1)
    let found: Void? = try location.read(on: console) { store in
      if invocation.has(.counter) {
        return try IncrementCommand.number(ofKey: key, in: store).map { number in
          try IncrementCommand.show(number, ofKey: key, invocation, on: console)
        }
      }
      if invocation.has(.json) {
        return try store.entry(forKey: key).map { entry in
          try console.print(EntryText.object(of: entry, isLive: store.isFollowing).text)
        }
      }
      return try store.withValue(forKey: key) { value in
        if console.outputIsTerminal {
          try show(value, on: console)
        } else {
          try console.write(value)
        }
      }
    }
    if found == nil { throw notFound(key) }
  }

  /// Shows a value of plain text on a terminal, and ends it with a newline.
  private static func show(_ value: RawSpan, on console: Console) throws {
    let byteLimit = 1 << 20
    guard value.byteCount <= byteLimit, DisplayText.isPlainText(value.copied) else {
      throw CommandFailure(
        .failure,
        "\(DisplayText.exactSize(value.byteCount)) are "
          + (value.byteCount > byteLimit ? "too many" : "not plain text")
          + " for a terminal; write them to a file, as in cairn get STORE KEY > FILE")
    }
    try console.write(value)
    if !value.copied.suffix(1).allSatisfy({ $0 == UInt8(ascii: "\n") }) { try console.print("") }
  }

  /// Removes every given key that exists, and reports the absent ones.
  static func delete(_ invocation: Invocation, on console: Console) throws {
    let location = try invocation.store(at: 0)
    let keys = try invocation.keys(from: 1)
    try location.write(StoreLocation.forMany(createsStore: false)) { store in
      var seen: Set<[UInt8]> = []
      for key in keys where seen.insert(key).inserted {
        let members = invocation.has(.json) ? try members(key, in: store) : []
        let existed = try store.removeValue(forKey: key)
        if !existed { console.report(notFound(key)) }
        if invocation.has(.json) {
          try console.print(JSON.object(members + [("existed", .bool(existed))]).text)
        }
      }
    }
  }

  static func notFound(_ key: [UInt8]) -> CommandFailure {
    CommandFailure(.keyState, "\(DisplayText.line(key)): no such key")
  }
}
