import Cairn
import CommandText

/// `put`, `get` and `delete`: one value at a time.
enum ValueCommands {
  /// Stores a value, which is on disk when this returns.
  static func put(_ invocation: Invocation, on console: Console) throws {
    let location = try invocation.store(at: 0)
    let key = try invocation.key(at: 1)
    let configuration = StoreConfiguration()
    let lifetime =
      invocation.has(.lifetime)
      ? Lifetime.after(
        try invocation.value(of: .lifetime, Quantity.duration, Quantity.durationKind))
      : .standard
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
    try location.write(configuration) { store in
      _ = try store.setValue(value, forKey: key, lifetime: lifetime)
    }
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

  /// Writes a value's bytes to standard output.
  static func get(_ invocation: Invocation, on console: Console) throws {
    let location = try invocation.store(at: 0)
    let key = try invocation.key(at: 1)
    let found: Void? = try location.read(on: console) { store in
      try store.withValue(forKey: key) { value in
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
    let keys = try (1..<invocation.operands.count).map { try invocation.key(at: $0) }
    var configuration = StoreConfiguration()
    configuration.maintenanceInterval = nil
    configuration.createsStore = false
    try location.write(configuration) { store in
      var removed: Set<[UInt8]> = []
      for key in keys where !removed.contains(key) {
        // One sync, when the store is closed, covers all removals.
        if try store.removeValue(forKey: key, durability: .process) {
          removed.insert(key)
        } else {
          console.report(notFound(key))
        }
      }
    }
  }

  static func notFound(_ key: [UInt8]) -> CommandFailure {
    CommandFailure(.keyNotFound, "\(DisplayText.line(key)): no such key")
  }
}
