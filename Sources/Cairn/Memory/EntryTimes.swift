public import CairnStore

/// The times of an entry that is being written, in milliseconds.
@usableFromInline
struct EntryTimes: Sendable {
  @usableFromInline var now: Int64
  @usableFromInline var expires: Int64
  @usableFromInline var idleLimit: Int64

  @inlinable
  init(now: Int64, expires: Int64, idleLimit: Int64) {
    self.now = now
    self.expires = expires
    self.idleLimit = idleLimit
  }

  @inlinable
  var hasExpiredAtOnce: Bool { expires <= now || idleLimit <= 0 }
}

extension CacheEntryInfo {
  @usableFromInline
  init(_ node: EntryNode) {
    self.init(
      version: node.version, cost: node.cost,
      written: Timestamp(millisecondsSinceEpoch: node.written),
      accessed: Timestamp(millisecondsSinceEpoch: node.accessed),
      expires: node.expires == never ? nil : Timestamp(millisecondsSinceEpoch: node.expires),
      idleLimit: node.idleLimit == never ? nil : .milliseconds(node.idleLimit))
  }
}

/// The time as a cache has it: what clock, and what an entry gets that asks for nothing.
@usableFromInline
struct CacheClock: Sendable {
  private let clock: StoreClock
  /// `nil`: none. Milliseconds.
  @usableFromInline let lifetime: Int64?
  @usableFromInline let idleLimit: Int64

  /// - Parameter shared: the clock of a tier below, so that both say the same of an entry; `nil`: there is none.
  init(_ configuration: MemoryCacheConfiguration, shared: StoreClock?) {
    let start = Timestamp(millisecondsSinceEpoch: .min)
    clock = shared ?? StoreClock(configuration.clock, lastRecorded: start)
    lifetime = configuration.lifetime?.milliseconds
    idleLimit = configuration.idleLimit?.milliseconds ?? never
  }

  @usableFromInline
  func now() -> Int64 { clock.now().millisecondsSinceEpoch }

  /// The times of an entry that is written now.
  @inlinable
  func times(_ lifetime: Lifetime, idleLimit: Duration?) -> EntryTimes {
    if idleLimit == nil && self.lifetime == nil && lifetime.kind == .standard {
      return EntryTimes(now: now(), expires: never, idleLimit: self.idleLimit)
    }
    return explicitTimes(lifetime, idleLimit: idleLimit)
  }

  @usableFromInline
  func explicitTimes(_ lifetime: Lifetime, idleLimit: Duration?) -> EntryTimes {
    let now = now()
    let expires =
      switch lifetime.kind {
      case .standard: self.lifetime.map { end(of: $0, from: now) } ?? never
      case .unlimited: never
      case .after: end(of: lifetime.milliseconds, from: now)
      case .until: lifetime.milliseconds
      }
    return EntryTimes(
      now: now, expires: expires, idleLimit: idleLimit?.milliseconds ?? self.idleLimit)
  }

  /// The times of an entry that was written elsewhere and comes in now.
  @usableFromInline
  func times(expires: Timestamp?, idleLimit: Duration?) -> EntryTimes {
    EntryTimes(
      now: now(), expires: expires?.millisecondsSinceEpoch ?? never,
      idleLimit: idleLimit?.milliseconds ?? never)
  }

  /// The time so many milliseconds after another, `never` where it cannot be expressed.
  func end(of milliseconds: Int64, from start: Int64) -> Int64 {
    let (sum, overflow) = start.addingReportingOverflow(milliseconds)
    return overflow ? (milliseconds < 0 ? .min : never) : sum
  }
}
