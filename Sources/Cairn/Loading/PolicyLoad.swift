internal import CairnStore

/// One call for a value with a policy: the steps of the cache, in order.
///
/// It looks up the value, and returns it if the policy allows. Otherwise it waits for a load, which
/// looks once more before it begins.
struct PolicyLoad<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  typealias Flights = SingleFlight<Key, Loaded<Value>?>
  typealias Flight = Cairn.Flight<Loaded<Value>?>

  let key: Key
  let policy: LoadPolicy
  /// Whether the caller accepts that no value exists.
  let acceptsAbsence: Bool
  let flights: Flights
  /// The current time in milliseconds, for lifetimes.
  let now: @Sendable () -> Int64
  let loader: @Sendable (PriorValue<Value>?) async throws -> LoadResult<Value>
  let store: any LoadStore<Key, Value>

  func run() async throws -> Loaded<Value>? {
    while true {
      let found = try store.held(.answer)
      let freshness = freshness(of: found)
      switch freshness {
      case .given: return given(found)
      case .givenAndLoaded:
        flights.begin(key, newLoad())
        return given(found)
      case .loaded, .loadedOrGiven: break
      }
      do {
        let isSoft = freshness == .loadedOrGiven
        let loaded = try await flights.value(
          forKey: key, softLimit: isSoft ? policy.softTimeLimit : nil, newLoad())
        // A call with another policy may have begun the load, and may allow more than this one.
        if let loaded, !loaded.isStale { return loaded }
        if loaded == nil, acceptsAbsence { return nil }
      } catch {
        // A cancelled caller receives nothing.
        if error is CancellationError, Task.isCancelled { throw error }
        if case StoreError.circularLoad = error { throw error }
        guard let stale = try staleValue() else {
          // The load continues, and the caller waits for it after all.
          if error is SoftTimeLimit { continue }
          throw error
        }
        return stale
      }
    }
  }

  /// The stale value that may be returned after a failed load, if it is still there.
  private func staleValue() throws -> Loaded<Value>? {
    guard let found = try store.held(.check) else { return nil }
    let now = now()
    let age = Double(now) - Double(found.expires)
    return age < Double(policy.retention) ? given(found) : nil
  }

  private func freshness(of found: HeldValue<Value>?) -> PolicyDecision {
    let record = flights.history.record(key)
    let now = now()
    guard let found else {
      if acceptsAbsence, let record, record.absenceEnd > now { return .given }
      return .loaded
    }
    let decision = policy.freshness(
      expires: found.expires, validated: validated(found, record), at: now,
      retryTime: record?.retryTime ?? .min)
    // While the value is fresh, a load whose result is lost helps nobody.
    if decision == .givenAndLoaded, found.expires > now, !store.keepsValues { return .given }
    return decision
  }

  private func validated(
    _ found: HeldValue<Value>, _ record: LoadHistory<Key>.Record?
  ) -> Int64 {
    guard let record, record.version == found.version else { return found.written }
    return max(record.validated, found.written)
  }

  private func given(_ found: HeldValue<Value>?) -> Loaded<Value>? {
    guard let found else { return nil }
    var given = Loaded(found.value)
    given.age = age(of: found)
    given.isStale = found.expires <= now()
    if given.isStale { flights.staleCount.add() }
    return given
  }

  private func age(of found: HeldValue<Value>) -> Duration {
    let start = validated(found, flights.history.record(key))
    return .milliseconds(max(0, now().subtracting(clamped: start)))
  }

  // MARK: The load

  private func newLoad() -> Flights.Load {
    Flights.Load(
      found: {
        // A stale value was returned, so the key still needs a load, unless another caller has
        // loaded it.
        let found = try store.held(.check)
        switch freshness(of: found) {
        case .given: return .some(given(found))
        case .givenAndLoaded, .loadedOrGiven, .loaded: return nil
        }
      },
      load: { flight in try await load(flight) }, timeLimit: policy.timeLimit,
      noteTimeOut: { flight in noteFailure(flight) },
      noteUnheard: { error in store.noteUnheard(error) })
  }

  private func load(_ flight: Flight) async throws -> Loaded<Value>? {
    let found = try store.held(.prior)
    let prior = found.map {
      PriorValue(
        value: $0.value, version: $0.version, age: age(of: $0), isStale: $0.expires <= now(),
        metadata: $0.metadata)
    }
    let result: LoadResult<Value>
    do { result = try await loader(prior) } catch {
      // An abandoned load says nothing about the origin.
      if !Task.isCancelled { noteFailure(flight) }
      throw error
    }
    switch result.kind {
    case .loaded(var loaded):
      loaded.options.lifetime = policy.jittered(
        loaded.options.lifetime ?? .standard, standard: store.standardLifetime,
        random: flights.random())
      await store.keep(loaded, replacing: found?.version, flight)
      noteSuccess(flight) { _ in }
      flights.count { if found == nil { $0.freshCount += 1 } else { $0.refreshedCount += 1 } }
      return loaded
    case .notModified(let prior, let lifetime):
      let jittered = policy.jittered(
        lifetime, standard: store.standardLifetime, random: flights.random())
      await store.renew(version: prior.version, to: jittered, flight)
      let now = now()
      noteSuccess(flight) { record in
        record.version = prior.version
        record.validated = now
      }
      flights.count {
        $0.refreshedCount += 1
        $0.notModifiedCount += 1
      }
      return Loaded(prior.value)
    case .absent(let duration, let tags):
      await store.drop(version: found?.version, flight)
      let end = now().adding(clamped: max(0, duration.milliseconds))
      noteSuccess(flight) { record in
        // A removal of a tag since the load began has ended this absence.
        if !tags.isEmpty, flights.hasRemovedTag(since: flight) { return }
        record.absenceEnd = end
        record.tags = tags
      }
      flights.count { $0.absentCount += 1 }
      return nil
    }
  }

  private func noteFailure(_ flight: Flight) {
    // If no value can be returned before a load ends, no caller asks for the retry time.
    if flights.retained == 0, policy.refreshAhead == nil { return }
    let now = now()
    flights.history.change(key, unless: { flight.isOutdated }) { record in
      record.failureCount += 1
      let delay = policy.retryDelay(
        failureCount: record.failureCount, random: flights.random())
      record.retryTime = now.adding(clamped: delay)
    }
  }

  private func noteSuccess(
    _ flight: Flight, _ body: (inout LoadHistory<Key>.Record) -> Void
  ) {
    flights.history.change(key, unless: { flight.isOutdated }) { record in
      record = LoadHistory<Key>.Record()
      body(&record)
    }
  }
}

/// The cache operations that a load with a policy needs for one key.
protocol LoadStore<Key, Value>: Sendable {
  associatedtype Key: Hashable & Sendable
  associatedtype Value: Sendable

  /// The default lifetime of entries.
  var standardLifetime: Lifetime { get }

  /// Whether loaded values can be kept.
  var keepsValues: Bool { get }

  /// The value of the key: fresh, or stale for less time than any policy allows.
  func held(_ purpose: HeldPurpose) throws -> HeldValue<Value>?

  /// Keeps a value, unless the flight is outdated or the key has a value of another version.
  func keep(
    _ loaded: Loaded<Value>, replacing version: UInt64?, _ flight: Flight<Loaded<Value>?>) async

  /// Extends the lifetime of one version's value, unless the flight is outdated.
  func renew(
    version: UInt64, to lifetime: Lifetime, _ flight: Flight<Loaded<Value>?>) async

  /// Removes one version's value, unless the flight is outdated.
  func drop(version: UInt64?, _ flight: Flight<Loaded<Value>?>) async

  /// Tells observers that a load failed while no caller waited for it.
  func noteUnheard(_ error: any Error)
}
