import Cairn

// Writes go to the engine, and then from what is near. In the other order, a load between the two would keep the old value.
extension NearCache {
  /// Sets the value of a key, for all machines. When it returns, this machine's reads find it, or a later one; other
  /// machines' reads after a round trip, and in any case after the staleness limit.
  ///
  /// - Parameters:
  ///   - value: the value.
  ///   - key: the key.
  ///   - lifetime: how long the engine keeps it; `nil`: for ever.
  /// - Throws: `EngineError`, whose `mayHaveHappened` says whether it may be set all the same.
  public func setValue(
    _ value: Value, forKey key: Key, lifetime: Duration? = nil
  ) async throws {
    try await setValues([(key, value)], lifetime: lifetime)
  }

  /// Sets the values of keys, all in one write; each by itself takes effect at once.
  ///
  /// - Throws: as `setValue`: the first error. The others may be set.
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

  /// Removes the value of a key, for all machines. Otherwise as `setValue`.
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

  /// On the thread of the caller: without a sync it takes microseconds, and a thread of the near cache would come to it
  /// after a switch there and one back.
  private func forget(_ key: Key) throws(CacheError) { try near.removeValue(forKey: key) }

  private func forget(_ keys: [Key]) async throws(CacheError) {
    for key in keys { tickets.void(key) }
    do throws(CacheError) {
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
