import Cairn

// A write first goes to the engine, then removes the near copy. In the opposite order, a load
// between the two steps would keep the old value.
extension NearCache {
  /// Sets the value of a key for all machines. When this call returns, reads on this machine find
  /// the value or a later one. Reads on other machines find it after a round trip, or at the latest
  /// after the staleness limit.
  ///
  /// - Parameters:
  ///   - value: the value.
  ///   - key: the key.
  ///   - lifetime: how long the engine keeps the value; `nil` means forever.
  /// - Throws: `EngineError`, whose `mayHaveHappened` says whether the value may still be set.
  public func setValue(
    _ value: Value, forKey key: Key, lifetime: Duration? = nil
  ) async throws {
    try await setValues([(key, value)], lifetime: lifetime)
  }

  /// Sets the values of keys in one write. The values do not take effect together.
  ///
  /// - Throws: the first error, as `setValue` does. Other values may be set.
  public func setValues(
    _ pairs: [(key: Key, value: Value)], lifetime: Duration? = nil
  ) async throws {
    var commands: [Command] = []
    for (key, value) in pairs {
      commands.append(
        EngineKey(client, bytes(of: key)).writing(try coder.encode(value), life: lifetime))
    }
    try await write(commands, pairs.map(\.key))
  }

  /// Removes the value of a key for all machines. Otherwise like `setValue`.
  public func removeValue(forKey key: Key) async throws {
    try await write([EngineKey(client, bytes(of: key)).removing], [key])
  }

  private func write(_ commands: [Command], _ keys: [Key]) async throws {
    let replies: [Reply]
    do throws(EngineError) { replies = try await client.replies(to: commands) } catch {
      if error.mayHaveHappened { try await forget(keys) }
      throw error
    }
    try await forget(keys)
    for (command, reply) in zip(commands, replies) {
      if case .error(let text) = reply {
        throw EngineError(.refused(text), configuration.engine.endpoint, call: command.name)
      }
    }
  }

  /// Removes the near copy on the calling thread. Without a sync that takes microseconds, and
  /// another thread would cost two thread switches.
  private func forget(_ key: Key) throws(StoreError) { try near.removeValue(forKey: key) }

  private func forget(_ keys: [Key]) async throws(StoreError) {
    for key in keys { tickets.void(key) }
    do throws(StoreError) {
      if keys.count == 1, configuration.near.store.durability != .durable {
        try forget(keys[0])
      } else {
        try await near.removeValues(forKeys: keys)
      }
    } catch {
      distrustNear()
      throw error
    }
  }
}
