public import CairnStore

/// The times of an entry that is being written, in milliseconds.
@usableFromInline
struct EntryTimes: Sendable {
  @usableFromInline var now: Int64
  @usableFromInline var expires: Int64
  @usableFromInline var idleLimit: Int64
  /// When the value was written: `now`, unless it was written elsewhere.
  @usableFromInline var written: Int64

  @inlinable
  init(now: Int64, expires: Int64, idleLimit: Int64, written: Int64? = nil) {
    self.now = now
    self.written = written ?? now
    self.expires = expires
    self.idleLimit = idleLimit
  }

  @inlinable
  var hasExpiredAtOnce: Bool { expires <= now || idleLimit <= 0 }
}

extension EntryInfo {
  @usableFromInline
  init(_ node: EntryNode) {
    self.init(
      version: node.version, valueByteCount: 0,
      written: Timestamp(millisecondsSinceEpoch: node.written),
      accessed: Timestamp(millisecondsSinceEpoch: node.accessed),
      expires: node.expires == never ? nil : Timestamp(millisecondsSinceEpoch: node.expires),
      idleLimit: node.idleLimit == never ? nil : .milliseconds(node.idleLimit),
      cost: node.cost, metadataByteCount: 0)
  }
}

/// The clock of a cache, and the defaults for entries.
@usableFromInline
struct CacheClock: ~Copyable, Sendable {
  private let clock: StoreClock
  var source: StoreClock { clock }
  private let standardLifetime: Lifetime
  /// In milliseconds, or `never`.
  private let standardIdleLimit: Int64

  /// - Parameter shared: the clock of the tier below, so that both tiers agree on expiry, or `nil`
  ///   if there is none.
  init(_ configuration: MemoryConfiguration, shared: StoreClock?) {
    let start = Timestamp(millisecondsSinceEpoch: .min)
    clock = shared ?? StoreClock(configuration.clock, lastRecorded: start)
    standardLifetime = configuration.lifetime
    standardIdleLimit = configuration.idleLimit?.milliseconds ?? never
  }

  @usableFromInline
  func now() -> Int64 { clock.now().millisecondsSinceEpoch }

  /// The times of an entry that is written now.
  ///
  /// - Parameter isNeverIdle: whether no idle limit means none, instead of the default.
  @inlinable
  func times(
    _ lifetime: Lifetime, idleLimit: Duration?, isNeverIdle: Bool = false
  ) -> EntryTimes {
    if idleLimit == nil && lifetime.kind == .standard && !isNeverIdle { return standardTimes() }
    var times = explicitTimes(lifetime, idleLimit: idleLimit)
    if isNeverIdle { times.idleLimit = never }
    return times
  }

  /// The times of an entry without options, written now.
  @usableFromInline
  func standardTimes() -> EntryTimes {
    let now = now()
    return EntryTimes(
      now: now, expires: end(of: standardLifetime, from: now), idleLimit: standardIdleLimit)
  }

  @usableFromInline
  func explicitTimes(_ lifetime: Lifetime, idleLimit: Duration?) -> EntryTimes {
    let now = now()
    return EntryTimes(
      now: now, expires: end(of: lifetime.or(standardLifetime), from: now),
      idleLimit: idleLimit?.milliseconds ?? standardIdleLimit)
  }

  /// The times of an entry that was written elsewhere and is inserted now.
  @usableFromInline
  func times(expires: Timestamp?, idleLimit: Duration?, written: Timestamp? = nil) -> EntryTimes {
    EntryTimes(
      now: now(), expires: expires?.millisecondsSinceEpoch ?? never,
      idleLimit: idleLimit?.milliseconds ?? never, written: written?.millisecondsSinceEpoch)
  }

  @inline(__always)
  private func end(of lifetime: Lifetime, from now: Int64) -> Int64 {
    switch lifetime.kind {
    case .standard, .unlimited: never
    case .after: now.adding(clamped: lifetime.milliseconds)
    case .until: lifetime.milliseconds
    }
  }
}
