import Cairn

/// `put`, `get` and `delete`: one value at a time.
enum ValueCommands {
  /// Stores a value, which is on disk when this returns.
  static func put(_ invocation: Invocation) throws {
    let location = try StoreLocation(argument: invocation.operands[0])
    let key = try invocation.key(at: 1)
    let configuration = StoreConfiguration()
    var lifetime: Duration?
    if let text = invocation.options[.ttl] {
      guard let duration = Lifetime.parse(text) else {
        throw invocation.usage(
          "--ttl must be decimal seconds above 0, not \(DisplayText.line(text))")
      }
      lifetime = duration
    }
    // The value comes first, so that no other process is kept out while this one waits for it.
    let value: [UInt8]
    if invocation.operands.count > 2 {
      value = invocation.operands[2]
    } else {
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

  /// Writes a value's bytes to standard output, and nothing else.
  static func get(_ invocation: Invocation, on console: Console) throws {
    let location = try StoreLocation(argument: invocation.operands[0])
    let key = try invocation.key(at: 1)
    let found: Void? = try location.read { store in
      try store.withValue(forKey: key) { value in try console.write(value) }
    }
    if found == nil { throw notFound(key) }
  }

  /// Removes every key that is there, and says which were not.
  static func delete(_ invocation: Invocation, on console: Console) throws {
    let location = try StoreLocation(argument: invocation.operands[0])
    let keys = try (1..<invocation.operands.count).map { try invocation.key(at: $0) }
    var configuration = StoreConfiguration()
    configuration.createsStore = false
    try location.write(configuration) { store in
      var removed: Set<[UInt8]> = []
      for key in keys where !removed.contains(key) {
        // One sync, by closing, serves them all.
        if try store.removeValue(forKey: key, durability: .process) {
          removed.insert(key)
        } else {
          console.report(notFound(key))
        }
      }
    }
  }

  private static func notFound(_ key: [UInt8]) -> CommandFailure {
    CommandFailure(.keyNotFound, "\(DisplayText.line(key)): no such key")
  }
}
