internal import CairnStore

/// The caches of a process that are known by name: one live one for each directory.
///
/// A cache has its place from when `shared` opened it until its tier on disk begins to close. Then the place is
/// empty, though it is still there: who asks opens another one, and waits for the store. It goes when the store is
/// closed, so that there are never more places than caches that are open.
enum SharedCaches {
  private enum Place: Sendable {
    /// Somebody opens it.
    case opening
    case open(Weak)
  }

  private struct Weak: Sendable {
    /// Never looked at under the lock but to be handed out: the reference could be the last one.
    weak var cache: (any AnyObject & Sendable)?
    /// The tier on disk.
    let tier: ObjectIdentifier
    var isClosing = false
  }

  /// By the bytes of the path: names that are equal texts may be two directories.
  private static let places = Lock<[[UInt8]: Place]>([:], waits: true)

  /// The live cache at a path, or the one that `open` makes. Of several that ask at once, one opens it and
  /// the others wait.
  ///
  /// - Parameter tier: its tier on disk, which may be itself.
  /// - Throws: `otherType` where the live one is of another type; what `open` throws.
  static func cache<Cache: AnyObject & Sendable>(
    at path: String, tier: (Cache) -> AnyObject, open: () throws(CacheError) -> Cache
  ) throws(CacheError) -> Cache {
    let path = Array(path.utf8)
    let (live, isReplacement) = places.waitUntil { places -> ((any AnyObject & Sendable)?, Bool)? in
      switch places[path] {
      case .opening: return nil
      case .open(let weak):
        if let cache = weak.cache { return (cache, false) }
        places[path] = .opening
        return (nil, true)
      case nil:
        places[path] = .opening
        return (nil, false)
      }
    }
    if let live {
      guard let cache = live as? Cache else {
        throw .otherType(found: "\(type(of: live))", expected: "\(Cache.self)")
      }
      return cache
    }
    do throws(CacheError) {
      let cache = try opened(isReplacement: isReplacement, open)
      enter(.open(Weak(cache: cache, tier: ObjectIdentifier(tier(cache)))), at: path)
      return cache
    } catch {
      enter(nil, at: path)
      throw error
    }
  }

  /// Opens a cache. One that was there before may still be closing its store, on another thread.
  private static func opened<Cache>(
    isReplacement: Bool, _ open: () throws(CacheError) -> Cache
  ) throws(CacheError) -> Cache {
    let end = ContinuousClock.now.advanced(by: .seconds(10))
    while true {
      do throws(CacheError) { return try open() } catch {
        guard isReplacement, case .store(.locked) = error, ContinuousClock.now < end else {
          throw error
        }
        pause(for: .milliseconds(1))
      }
    }
  }

  private static func enter(_ place: Place?, at path: [UInt8]) {
    places.withLock { $0[path] = place }
    places.wakeAll()
  }

  /// To be called before a tier closes its store: its cache is given to nobody any more.
  ///
  /// - Returns: whether it was shared until now.
  static func beginClosing(_ tier: AnyObject) -> Bool {
    if plantedInCache(.closingStaysShared) { return true }
    return places.withLock { places in
      guard let (path, weak) = find(ObjectIdentifier(tier), in: places), !weak.isClosing else {
        return false
      }
      places[path] = .open(Weak(cache: nil, tier: weak.tier, isClosing: true))
      return true
    }
  }

  /// To be called when a tier has closed its store: nobody needs to wait for it any more.
  static func endClosing(_ tier: AnyObject) {
    if plantedInCache(.deadPlacesKept) { return }
    places.withLock { places in
      if let (path, _) = find(ObjectIdentifier(tier), in: places) { places[path] = nil }
    }
  }

  private static func find(
    _ tier: ObjectIdentifier, in places: [[UInt8]: Place]
  ) -> ([UInt8], Weak)? {
    for (path, place) in places {
      if case .open(let weak) = place, weak.tier == tier { return (path, weak) }
    }
    return nil
  }

  /// For tests: how many paths below a directory have a place.
  static func count(below directory: String) -> Int {
    let directory = Array((directory + "/").utf8)
    return places.withLock { $0.keys.count { $0.starts(with: directory) } }
  }
}
