import Cairn

// What is done for a key that is not near.
extension NearCache {
  /// Asks the engine, and keeps what it answers.
  ///
  /// It takes half of what a load of the near cache takes. Several tasks that ask for a key at once each ask the engine, in
  /// one write.
  ///
  /// - Returns: `nil` where the engine has none.
  func ask(_ key: Key) async throws(EngineError) -> Value? {
    // Both before the engine is asked: what is written after that voids the ticket, or the session has ended.
    let session = freshness.current
    let ticket = tickets.ticket(for: key)
    let asked = SystemClock().now()
    let found = try await EngineKey(client, bytes(of: key)).value()
    guard case .value(let bytes, let life) = found else { return nil }
    let value = try decode(bytes, key)
    if session == Freshness.noSession || life == .zero { return value }
    let copy = NearCopy(value: value, session: session, asked: asked)
    let end = asked.advanced(by: min(life ?? .seconds(1 << 40), configuration.nearLifetime))
    tickets.keep(key, ticket) {
      // Another task may have been faster. What cannot be kept is handed out all the same; the near cache's log tells why.
      if let held = try? near.peekValue(forKey: key), freshness.isFresh(held.session) { return }
      _ = try? near.setValue(copy, forKey: key, lifetime: .until(end))
    }
    return value
  }

  /// A load of the near cache, by one task of this machine.
  ///
  /// - Parameter failure: why the engine has not answered already.
  func load(
    _ key: Key, _ lifetime: Duration?, _ origin: Origin?, hasPrior: Bool,
    after failure: EngineError?
  ) async throws -> LoadResult<NearCopy<Value>> {
    do {
      if let failure { throw failure }
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
