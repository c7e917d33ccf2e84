internal import CairnStore

/// The caches of a process that are known by name: one live one for each directory.
///
/// A cache has its place from when `shared` opened it until its tier on disk begins to close. Then the place is
/// empty, though it is still there: who asks opens another one, and waits for the store. It goes when the store is
/// closed, so that there are never more places than caches that are open. Where a front is gone and its tier on
/// disk kept alone, nobody knows for how long: who asks is told that the store is locked.
enum SharedCaches {
  private enum Place: Sendable {
    /// This thread opens it, in the place of one that was there.
    case opening(by: ThreadID, replacing: Weak?)
    case open(Weak)
  }

  private struct Weak: Sendable {
    /// Never looked at under the lock but to be handed out: the reference could be the last one.
    weak var cache: (any AnyObject & Sendable)?
    /// The tier on disk, of which the same holds.
    weak var tier: (any AnyObject & Sendable)?
    let tierID: ObjectIdentifier
    var isClosing = false
    /// Whether nothing is left of the front, but for what holds the tier.
    var isFrontGone = false

    init(cache: any AnyObject & Sendable, tier: any AnyObject & Sendable) {
      self.cache = cache
      self.tier = tier
      tierID = ObjectIdentifier(tier)
    }
  }

  private enum Answer {
    case live(any AnyObject & Sendable)
    /// Nobody else opens it, until told otherwise.
    case open(replacing: Weak?)
    /// This thread does already.
    case circle
  }

  /// By the bytes of the path: names that are equal texts may be two directories.
  private static let places = Lock<[[UInt8]: Place]>([:], waits: true)

  /// The live cache at a path, or the one that `open` makes. Of several that ask at once, one opens it and
  /// the others wait.
  ///
  /// - Parameter tier: its tier on disk, which may be itself.
  /// - Throws: `otherType` where the live one is of another type; `locked` where this thread is just opening it;
  ///   what `open` throws.
  static func cache<Cache: AnyObject & Sendable>(
    at path: String, tier: (Cache) -> any AnyObject & Sendable,
    open: () throws(CacheError) -> Cache
  ) throws(CacheError) -> Cache {
    let key = Array(path.utf8)
    let thread = ThreadID.current
    let answer = places.waitUntil { places -> Answer? in
      var old: Weak?
      switch places[key] {
      case .opening(by: thread, replacing: _): return .circle
      case .opening: return nil
      case .open(let weak):
        if let cache = weak.cache { return .live(cache) }
        old = weak
      case nil: break
      }
      places[key] = .opening(by: thread, replacing: old)
      return .open(replacing: old)
    }
    switch answer {
    case .live(let live):
      guard let cache = live as? Cache else {
        throw .otherType(found: "\(type(of: live))", expected: "\(Cache.self)")
      }
      return cache
    case .circle: throw .store(.locked(path: path, inThisProcess: true))
    case .open(let old):
      do throws(CacheError) {
        let cache = try opened(at: key, isReplacement: old != nil, open)
        enter(.open(Weak(cache: cache, tier: tier(cache))), at: key)
        return cache
      } catch {
        leave(key)
        throw error
      }
    }
  }

  /// Opens a cache. One that was there before may still be closing its store, on another thread.
  private static func opened<Cache>(
    at key: [UInt8], isReplacement: Bool, _ open: () throws(CacheError) -> Cache
  ) throws(CacheError) -> Cache {
    let end = ContinuousClock.now.advanced(by: .seconds(10))
    var endOfFront: ContinuousClock.Instant?
    while true {
      do throws(CacheError) { return try open() } catch {
        let now = ContinuousClock.now
        guard isReplacement, case .store(.locked) = error, now < end else { throw error }
        if isKept(at: key) {
          // A front gives its tier up just after it has told that it is gone, and who closes the tier may
          // have let the front go first.
          let lastTry = endOfFront ?? now.advanced(by: .seconds(1))
          if now >= lastTry { throw error }
          endOfFront = lastTry
        }
        pause(for: .milliseconds(1))
      }
    }
  }

  /// Whether the tier lives whose place it was, and its front does not.
  private static func isKept(at key: [UInt8]) -> Bool {
    let tier = places.withLock { places -> (any AnyObject & Sendable)? in
      guard case .opening(_, let old?) = places[key], old.isFrontGone, !old.isClosing else {
        return nil
      }
      return old.tier
    }
    return tier != nil
  }

  /// To be called where nothing was opened: who was there before has his place again, if he lives.
  private static func leave(_ key: [UInt8]) {
    let tier = places.withLock { places -> (any AnyObject & Sendable)? in
      guard case .opening(_, let old?) = places[key], let tier = old.tier else {
        places[key] = nil
        return nil
      }
      places[key] = .open(old)
      return tier
    }
    places.wakeAll()
    // The last reference, perhaps: its end empties the place.
    withExtendedLifetime(tier) {}
  }

  private static func enter(_ place: Place?, at path: [UInt8]) {
    places.withLock { $0[path] = place }
    places.wakeAll()
  }

  /// To be called before a tier closes its store: its cache is given to nobody any more.
  static func beginClosing(_ tier: AnyObject) {
    places.withLock { places in
      change(ObjectIdentifier(tier), in: &places) { weak in
        weak.cache = nil
        weak.isClosing = true
      }
    }
  }

  /// To be called when a front goes that had this tier.
  static func endFront(of tier: AnyObject) {
    places.withLock { change(ObjectIdentifier(tier), in: &$0) { $0.isFrontGone = true } }
  }

  /// To be called when a tier has closed its store, and not before: nobody waits for it any more.
  static func endClosing(_ tier: AnyObject) {
    places.withLock { places in
      for (path, place) in places {
        switch place {
        case .open(let weak) where weak.tierID == ObjectIdentifier(tier): places[path] = nil
        case .opening(let thread, let weak?) where weak.tierID == ObjectIdentifier(tier):
          places[path] = .opening(by: thread, replacing: nil)
        default: continue
        }
        return
      }
    }
  }

  /// Changes what is known of a tier, where it has a place or had it until somebody began to open another.
  private static func change(
    _ tier: ObjectIdentifier, in places: inout [[UInt8]: Place], _ body: (inout Weak) -> Void
  ) {
    for (path, place) in places {
      switch place {
      case .open(var weak) where weak.tierID == tier:
        body(&weak)
        places[path] = .open(weak)
      case .opening(let thread, var weak?) where weak.tierID == tier:
        body(&weak)
        places[path] = .opening(by: thread, replacing: weak)
      default: continue
      }
      return
    }
  }

  /// For tests: how many paths below a directory have a place.
  static func count(below directory: String) -> Int {
    let directory = Array((directory + "/").utf8)
    return places.withLock { $0.keys.count { $0.starts(with: directory) } }
  }
}
