import Cairn

// What is done for a key that is not near, by one task of this machine.
extension NearCache {
  func load(
    _ key: Key, _ lifetime: Duration?, _ origin: Origin?, hasPrior: Bool
  ) async throws -> LoadResult<NearCopy<Value>> {
    do {
      return try await loadByEngine(key, lifetime, origin)
    } catch let error as EngineError {
      // A near copy that may be given is: the cache does that where a load fails.
      guard let origin, configuration.asksOriginDuringOutage, !hasPrior, error.isOutage else {
        throw error
      }
      return unkept(try await origin())
    }
  }

  private func loadByEngine(
    _ key: Key, _ lifetime: Duration?, _ origin: Origin?
  ) async throws -> LoadResult<NearCopy<Value>> {
    let engineKey = EngineKey(client, bytes(of: key))
    var wait: Int64 = 5_000_000
    while true {
      // Before the engine is asked: what is written after that is told of in this session, or it has ended.
      let session = freshness.current
      let asked = SystemClock().now()
      if case .value(let bytes, let life) = try await engineKey.value() {
        return try kept(bytes, life, key, session, asked)
      }
      guard let origin else { return .absent(for: .zero) }
      let token = "\(UInt64.random(in: 0 ... .max))"
      let (found, isOwner) = try await engineKey.valueOrLock(
        token: token, lease: configuration.lease)
      if case .value(let bytes, let life) = found {
        if isOwner { await engineKey.unlock(token: token) }
        return try kept(bytes, life, key, session, asked)
      }
      if isOwner {
        if let value = try await loadByOrigin(engineKey, lifetime, token, origin) { return value }
        // Somebody wrote meanwhile, or the lease has ended: the engine knows better.
        continue
      }
      // Another machine loads it.
      try await Task.sleep(for: .nanoseconds(Int64.random(in: wait / 2...wait)))
      wait = min(wait * 2, 50_000_000)
    }
  }

  /// - Returns: `nil` where the engine did not take the value.
  private func loadByOrigin(
    _ engineKey: EngineKey, _ lifetime: Duration?, _ token: String, _ origin: Origin
  ) async throws -> LoadResult<NearCopy<Value>>? {
    let value: Value
    let bytes: [UInt8]
    do {
      value = try await origin()
      bytes = try coder.encode(value)
    } catch {
      await engineKey.unlock(token: token)
      throw error
    }
    // The invalidation of this write may come before or after what it brings is kept. So it is not kept: the next read asks
    // the engine.
    do {
      return try await engineKey.put(bytes, life: lifetime, token: token) ? unkept(value) : nil
    } catch {
      // The origin has answered. That the engine is down now is no reason to withhold it.
      if error.isOutage { return unkept(value) }
      throw error
    }
  }

  private func kept(
    _ bytes: [UInt8], _ life: Duration?, _ key: Key, _ session: UInt64, _ asked: Timestamp
  ) throws -> LoadResult<NearCopy<Value>> {
    let copy = NearCopy(value: try decode(bytes, key), session: session, asked: asked)
    if session == Freshness.noSession { return .loaded(copy, options: .lifetime(.until(asked))) }
    let life = min(life ?? configuration.nearLifetime, configuration.nearLifetime)
    return .loaded(copy, options: .lifetime(.until(asked.advanced(by: life))))
  }

  /// Of what it answers, nothing is given to later reads but as a stale value.
  private func unkept(_ value: Value) -> LoadResult<NearCopy<Value>> {
    let now = SystemClock().now()
    return .loaded(
      NearCopy(value: value, session: Freshness.noSession, asked: now),
      options: .lifetime(.until(now)))
  }
}

extension EngineError {
  /// Whether the engine is down, as far as this machine can tell.
  var isOutage: Bool {
    switch cause {
    case .cannotConnect, .lost, .timedOut, .circuitOpen: true
    case .refused(let text): text.hasPrefix("LOADING") || text.hasPrefix("MASTERDOWN")
    case .unexpected, .undecodable, .closed, .notFollowing: false
    }
  }
}
