internal import CairnStore

/// One call that is given a value by a policy: what a cache does for it, and in which order.
///
/// It looks, and gives what it finds where the policy allows that. Else it waits for a load, which looks once more before
/// it begins.
struct PolicyLoad<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  typealias Flights = SingleFlight<Key, Loaded<Value>?>
  typealias Flight = Cairn.Flight<Loaded<Value>?>

  let key: Key
  let policy: LoadPolicy
  /// Whether "there is none" is an answer to the caller.
  let acceptsAbsence: Bool
  let flights: Flights
  /// Milliseconds, by which lifetimes end.
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
        flights.begin(key, load)
        return given(found)
      case .loaded, .loadedOrGiven: break
      }
      do {
        let isSoft = freshness == .loadedOrGiven
        let loaded = try await flights.value(
          forKey: key, softLimit: isSoft ? policy.softTimeLimit : nil, load)
        // Another call's policy may have begun it, and may allow more than this one's.
        if let loaded, !loaded.isStale { return loaded }
        if loaded == nil, acceptsAbsence { return nil }
      } catch {
        // Who is cancelled is given nothing.
        if error is CancellationError, Task.isCancelled { throw error }
        if case CacheError.circularLoad = error { throw error }
        guard let stale = try staleValue() else {
          // The load goes on, and is waited for after all.
          if error is SoftTimeLimit { continue }
          throw error
        }
        return stale
      }
    }
  }

  /// The stale value that may be given after a load has failed, where it is still there.
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
    return policy.freshness(
      expires: found.expires, validated: validated(found, record), at: now,
      retryTime: record?.retryTime ?? .min, loadTime: record?.loadTime, random: flights.random)
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
    let age = now().subtractingReportingOverflow(start)
    return .milliseconds(age.overflow ? .max : max(0, age.partialValue))
  }

  // MARK: The load

  private var load: Flights.Load {
    Flights.Load(
      found: {
        // What is given meanwhile is to be loaded as before, unless somebody has done so.
        let found = try store.held(.check)
        switch freshness(of: found) {
        case .given: return .some(given(found))
        case .givenAndLoaded, .loadedOrGiven, .loaded: return nil
        }
      },
      load: { flight in try await load(flight) }, timeLimit: policy.timeLimit,
      noteTimeOut: { flight in noteFailure(flight) })
  }

  private func load(_ flight: Flight) async throws -> Loaded<Value>? {
    let found = try store.held(.prior)
    let prior = found.map {
      PriorValue(
        value: $0.value, version: $0.version, age: age(of: $0), isStale: $0.expires <= now(),
        metadata: $0.metadata)
    }
    let start = now()
    let result: LoadResult<Value>
    do { result = try await loader(prior) } catch {
      // A load that was given up says nothing of the origin.
      if !Task.isCancelled { noteFailure(flight) }
      throw error
    }
    switch result.kind {
    case .loaded(var loaded):
      loaded.options.lifetime = policy.jittered(
        loaded.options.lifetime ?? .standard, standard: store.standardLifetime,
        random: flights.random())
      await store.keep(loaded, replacing: found?.version, flight)
      noteSuccess(flight, from: start) { _ in }
      flights.count { if found == nil { $0.freshCount += 1 } else { $0.refreshedCount += 1 } }
      return loaded
    case .notModified(let prior, let lifetime):
      let jittered = policy.jittered(
        lifetime, standard: store.standardLifetime, random: flights.random())
      let end = jittered.length(standard: store.standardLifetime, at: now())
      await store.renew(version: prior.version, to: end, flight)
      let now = now()
      noteSuccess(flight, from: start) { record in
        record.version = prior.version
        record.validated = now
      }
      flights.count {
        $0.refreshedCount += 1
        $0.notModifiedCount += 1
      }
      return Loaded(prior.value)
    case .absent(let duration):
      await store.drop(version: found?.version, flight)
      let (sum, overflow) = now().addingReportingOverflow(max(0, duration.milliseconds))
      noteSuccess(flight, from: start) { $0.absenceEnd = overflow ? .max : sum }
      flights.count { $0.absentCount += 1 }
      return nil
    }
  }

  private func noteFailure(_ flight: Flight) {
    // Where nothing is given before a load has ended, nobody asks when to try again.
    if flights.retained == 0, policy.refreshAhead == nil, policy.earlyRefresh == nil { return }
    let now = now()
    flights.history.change(key, now: now, unless: { flight.isOutdated }) { record in
      record.failureCount += 1
      let delay = policy.retryDelay(
        failureCount: record.failureCount, random: flights.random())
      let (sum, overflow) = now.addingReportingOverflow(delay)
      record.retryTime = overflow ? .max : sum
    }
  }

  private func noteSuccess(
    _ flight: Flight, from start: Int64, _ body: (inout LoadHistory<Key>.Record) -> Void
  ) {
    let now = now()
    flights.history.change(key, now: now, unless: { flight.isOutdated }) { record in
      record = LoadHistory<Key>.Record()
      if policy.earlyRefresh != nil { record.loadTime = max(0, now - start) }
      body(&record)
    }
  }
}

/// What a load by a policy needs of the cache that it is for, and of one key of it.
protocol LoadStore<Key, Value>: Sendable {
  associatedtype Key: Hashable & Sendable
  associatedtype Value: Sendable

  /// How long an entry lives that asks for nothing, in milliseconds; `nil`: for ever.
  var standardLifetime: Int64? { get }

  /// The value of the key: fresh, or stale for less than any policy allows.
  func held(_ purpose: HeldPurpose) throws -> HeldValue<Value>?

  /// Keeps a value, unless the flight is outdated, or the key has one of another version.
  func keep(
    _ loaded: Loaded<Value>, replacing version: UInt64?, _ flight: Flight<Loaded<Value>?>) async

  /// Has the value of a version live on, unless the flight is outdated.
  func renew(
    version: UInt64, to lifetime: Duration, _ flight: Flight<Loaded<Value>?>) async

  /// Removes the value of a version, unless the flight is outdated.
  func drop(version: UInt64?, _ flight: Flight<Loaded<Value>?>) async
}

extension Lifetime {
  /// How long it is from now on.
  ///
  /// - Parameter standard: the cache's, in milliseconds; `nil`: none.
  func length(standard: Int64?, at now: Int64) -> Duration {
    switch kind {
    case .standard: .milliseconds(standard ?? .max)
    case .unlimited: .milliseconds(Int64.max)
    case .after: .milliseconds(milliseconds)
    case .until: .milliseconds(milliseconds.subtractingReportingOverflow(now).partialValue)
    }
  }
}
