internal import Synchronization

/// Whether the store's directory is still there. Cleaners of caches remove directories whose files are open; then
/// every write goes on to succeed, into files that nobody can open again.
///
/// `LOCK` tells, since nobody else removes it: a file without a name has a link count of 0, and asking for that takes less
/// than a microsecond. Where the directory stayed, another process may have made a store in it, whose manifest must not
/// be replaced.
extension Engine {
  /// How long a write may go on after that, in milliseconds.
  private static let lookInterval: Int64 = 1000

  /// Whether it was noticed that the directory is gone.
  var hasVanished: Bool {
    @inline(__always) get { backgroundFlags.vanished.load(ordering: .relaxed) }
  }

  /// Throws where it was noticed that the directory is gone.
  @inline(__always)
  func checkPlace() throws(StoreError) {
    if hasVanished { throw .vanished(path: path) }
  }

  /// Looks whether the directory is gone.
  ///
  /// - Returns: whether it is, or was found to be before.
  @discardableResult
  func lookForPlace() -> Bool {
    if isReadOnly { return false }
    if hasVanished { return true }
    guard lockFile.isRemoved else { return false }
    if !backgroundFlags.vanished.exchange(true, ordering: .relaxed) {
      tell("\(StoreError.vanished(path: path)); nothing more is written into it")
    }
    return true
  }

  /// Looks whether the directory is gone, once a second.
  func lookForPlace(at now: Timestamp) {
    let time = now.millisecondsSinceEpoch
    let last = backgroundFlags.lookTime.load(ordering: .relaxed)
    let (passed, isTooLarge) = time.subtractingReportingOverflow(last)
    guard isTooLarge || abs(passed) >= Self.lookInterval,
      backgroundFlags.lookTime.compareExchange(
        expected: last, desired: time, ordering: .relaxed
      ).exchanged
    else { return }
    lookForPlace()
  }

  /// Empties a store whose directory is gone, in memory: another takes its place. What is being read is read to its
  /// end. The observer is told as of a removal of all.
  package func abandon() {
    let (segments, last, count) = manifest.withLock { state in
      state.resumable = nil
      return appender.withLock { appender in
        let segments = appender.segments + (appender.prepared.map { [$0] } ?? [])
        for segment in segments { segment.retire() }
        let count = index.count
        index.removeAll()
        appender.active = nil
        appender.prepared = nil
        appender.unpublished = nil
        appender.rolled = []
        appender.sealed = []
        for segment in segments { table.remove(segment) }
        return (segments, appender.nextSequence - 1, count)
      }
    }
    appender.wakeAll()
    withExtendedLifetime(segments) {}
    removalObserver?(.all(throughVersion: last, count: count))
  }
}
