internal import CairnStore

/// A process's named caches: at most one live cache for each directory.
///
/// A cache has a place here from the time `shared` opens it until it begins to close. The place
/// then stays in the table, but empty: the next caller opens another cache, and waits for the
/// store. The place is removed when the store is closed, so the table never has more places than
/// there are open caches.
enum SharedCaches {
  enum Place: Sendable {
    /// The thread `by` is opening the cache, perhaps to replace an earlier one.
    case opening(by: ThreadID, replacing: Weak?)
    case open(Weak)
  }

  struct Weak: Sendable {
    /// Read under the lock only to return it, because the reference could become the last one.
    weak var cache: (any AnyObject & Sendable)?
    let id: ObjectIdentifier

    init(_ cache: any AnyObject & Sendable) {
      self.cache = cache
      id = ObjectIdentifier(cache)
    }
  }

  private enum Answer {
    case live(any AnyObject & Sendable)
    /// The caller must open the cache. No other caller does until this one reports the result.
    case open(replacing: Weak?)
    /// The calling thread is already opening the cache.
    case circle
  }

  final class Places: Sendable {
    /// Keyed by the bytes of the path, because equal strings may name two directories.
    let byPath = Lock<[[UInt8]: Place]>([:], waits: true)
  }

  /// A forked child cannot use the caches of its parent.
  private static let ofProcess = PerProcess { Places() }
  static var places: Places { ofProcess.object }

  /// The open cache at a path, or a new one from `open`. If several callers need the cache at the
  /// same time, one opens it and the others wait.
  ///
  /// - Throws: `unusable` if the open cache has another type; `locked` if this thread is already
  ///   opening it; any error of `open`.
  static func cache<Cache: AnyObject & Sendable>(
    at path: String, open: () throws(StoreError) -> Cache
  ) throws(StoreError) -> Cache {
    let key = Array(path.utf8)
    let thread = ThreadID.current
    let answer = places.byPath.waitUntil { places -> Answer? in
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
        throw .unusable(
          path: path, reason: "it is open as a \(type(of: live)), not a \(Cache.self)")
      }
      return cache
    case .circle: throw .locked(path: path, inThisProcess: true)
    case .open(let old):
      do throws(StoreError) {
        let cache = try opened(at: key, isReplacement: old != nil, open)
        enter(.open(Weak(cache)), at: key)
        return cache
      } catch {
        leave(key)
        throw error
      }
    }
  }

  /// Opens a cache. An earlier one may still be closing its store on another thread.
  private static func opened<Cache>(
    at key: [UInt8], isReplacement: Bool, _ open: () throws(StoreError) -> Cache
  ) throws(StoreError) -> Cache {
    let end = ContinuousClock.now.advanced(by: .seconds(10))
    while true {
      do throws(StoreError) { return try open() } catch {
        guard isReplacement, case .locked = error, ContinuousClock.now < end else {
          throw error
        }
        pause(for: .milliseconds(1))
      }
    }
  }

  /// Call if no cache was opened. The earlier cache gets its place back if it is still alive.
  private static func leave(_ key: [UInt8]) {
    places.byPath.withLock { places in
      // If the earlier cache has since closed its store, it has given up its place.
      guard case .opening(_, let old?) = places[key] else {
        places[key] = nil
        return
      }
      places[key] = .open(old)
    }
    places.byPath.wakeAll()
  }

  private static func enter(_ place: Place?, at path: [UInt8]) {
    places.byPath.withLock { $0[path] = place }
    places.byPath.wakeAll()
  }

  /// Call before a cache closes its store. From then on, no caller gets the cache.
  static func beginClosing(_ cache: AnyObject) {
    places.byPath.withLock { places in
      guard let (path, place) = place(of: cache, in: places) else { return }
      switch place {
      case .open(var weak):
        weak.cache = nil
        places[path] = .open(weak)
      case .opening(let thread, var weak?):
        weak.cache = nil
        places[path] = .opening(by: thread, replacing: weak)
      default: break
      }
    }
  }

  /// Call only after a cache has closed its store. From then on, no caller waits for the cache.
  static func endClosing(_ cache: AnyObject) {
    places.byPath.withLock { places in
      switch place(of: cache, in: places) {
      case (let path, .open)?: places[path] = nil
      case (let path, .opening(let thread, _))?:
        places[path] = .opening(by: thread, replacing: nil)
      case nil: break
      }
    }
  }

  /// The place that a cache has, or had until another thread began to open a new one.
  private static func place(
    of cache: AnyObject, in places: [[UInt8]: Place]
  ) -> (path: [UInt8], place: Place)? {
    let id = ObjectIdentifier(cache)
    for (path, place) in places {
      switch place {
      case .open(let weak) where weak.id == id: return (path, place)
      case .opening(_, let weak?) where weak.id == id: return (path, place)
      default: continue
      }
    }
    return nil
  }
}
