import Cairn

// Loads of keys that have no near copy.
extension NearCache {
  /// Requests a value from the engine, and keeps a near copy of the answer.
  ///
  /// Takes half as long as a load of the near cache. Tasks that request a key at the same time each
  /// ask the engine, but their requests go out in one write.
  ///
  /// - Returns: `nil` if the engine has no value.
  func ask(_ key: Key) async throws(EngineError) -> Value? {
    // Take both before the request: a later write voids the ticket, unless the session has ended.
    let session = freshness.current
    let ticket = tickets.ticket(for: key)
    let asked = Asked()
    let found = try await EngineKey(client, bytes(of: key)).value()
    guard case .value(let bytes, let life) = found else { return nil }
    let value = try decode(bytes, key)
    if session == Freshness.noSession || life == .zero { return value }
    let copy = NearCopy(value, session, asked)
    let end = copy.asked.advanced(by: min(life ?? .seconds(1 << 40), configuration.nearLifetime))
    tickets.keep(key, ticket) {
      // Another task may have kept a copy first. If the copy cannot be kept, still return the
      // value; the near cache's log has the reason.
      if let held = try? near.peekValue(forKey: key), freshness.isFresh(held.session) { return }
      _ = try? near.setValue(copy, forKey: key, lifetime: .until(end))
    }
    return value
  }

  /// The loader of the near cache. One task of this machine runs it for a key.
  ///
  /// - Parameter failure: the error of an earlier request to the engine, or `nil`.
  func load(
    _ key: Key, _ lifetime: Duration?, _ origin: Origin?, hasPrior: Bool,
    after failure: EngineError?
  ) async throws -> LoadResult<NearCopy<Value>> {
    do {
      if let failure { throw failure }
      return try await loadByEngine(key, lifetime, origin)
    } catch let error as EngineError {
      // If there is a near copy, the cache may return it when the load fails.
      guard let origin, configuration.asksOriginDuringOutage, !hasPrior, error.isOutage else {
        throw error
      }
      let asked = Asked()
      return unkept(NearCopy(try await origin(), Freshness.noSession, asked))
    }
  }

  private func loadByEngine(
    _ key: Key, _ lifetime: Duration?, _ origin: Origin?
  ) async throws -> LoadResult<NearCopy<Value>> {
    let engineKey = EngineKey(client, bytes(of: key))
    var wait: Int64 = 5_000_000
    var isRefused = false
    var answer: NearCopy<Value>?
    while true {
      // Read the session before the request: an invalidation for a later write arrives in this
      // session, unless it has ended.
      let session = freshness.current
      let asked = Asked()
      if case .value(let bytes, let life) = try await engineKey.value() {
        return try kept(bytes, life, key, session, asked)
      }
      guard let origin else { return .absent(for: .zero) }
      if let answer { return unkept(answer) }
      let token = "\(UInt64.random(in: 0 ... .max))"
      let (found, isOwner) = try await engineKey.valueOrLock(
        token: token, lease: configuration.lease)
      if case .value(let bytes, let life) = found {
        if isOwner { await engineKey.unlock(token: token) }
        return try kept(bytes, life, key, session, asked)
      }
      if isOwner {
        let (copy, isTaken) = try await loadByOrigin(engineKey, lifetime, token, origin)
        if isTaken { return unkept(copy) }
        // Another caller wrote meanwhile, or the lease has ended, so ask the engine again. After a
        // write, also ask the origin again, but only once.
        let isLate = bootTime() >= copy.moment.adding(configuration.lease.nanoseconds)
        if isLate || isRefused { answer = copy }
        isRefused = true
        continue
      }
      // Another caller is loading the value.
      try await Task.sleep(for: .nanoseconds(Int64.random(in: wait / 2...wait)))
      wait = min(wait * 2, 50_000_000)
    }
  }

  /// - Returns: the value, and whether the engine has taken it or is down.
  private func loadByOrigin(
    _ engineKey: EngineKey, _ lifetime: Duration?, _ token: String, _ origin: Origin
  ) async throws -> (NearCopy<Value>, isTaken: Bool) {
    let asked = Asked()
    let copy: NearCopy<Value>
    let bytes: [UInt8]
    do {
      copy = NearCopy(try await origin(), Freshness.noSession, asked)
      bytes = try coder.encode(copy.value)
    } catch {
      await engineKey.unlock(token: token)
      throw error
    }
    // The invalidation of this write may arrive before or after a near copy is kept. So keep none:
    // the next read asks the engine.
    do {
      return (copy, try await engineKey.put(bytes, life: lifetime, token: token))
    } catch {
      // The origin has answered, so return its value even if the engine is down now.
      if error.isOutage { return (copy, true) }
      throw error
    }
  }

  private func kept(
    _ bytes: [UInt8], _ life: Duration?, _ key: Key, _ session: UInt64, _ asked: Asked
  ) throws -> LoadResult<NearCopy<Value>> {
    let copy = NearCopy(try decode(bytes, key), session, asked)
    if session == Freshness.noSession { return unkept(copy) }
    let life = min(life ?? configuration.nearLifetime, configuration.nearLifetime)
    return .loaded(copy, lifetime: .until(copy.asked.advanced(by: life)))
  }

  /// A result that expires at once: later reads may return it only as a stale value.
  private func unkept(_ copy: NearCopy<Value>) -> LoadResult<NearCopy<Value>> {
    .loaded(copy, lifetime: .until(copy.asked))
  }
}

extension EngineError {
  /// Whether the engine seems to be down.
  var isOutage: Bool {
    switch cause {
    case .cannotConnect, .lost, .timedOut, .circuitOpen: true
    case .refused(let text): text.hasPrefix("LOADING") || text.hasPrefix("MASTERDOWN")
    case .unexpected, .undecodable, .closed, .notFollowing: false
    }
  }
}
