import CairnStore

/// What may happen to a store in which one bit is flipped.
package enum DamageOutcome: Sendable {
  /// An error, the right values, or a state no older than the oldest that may be found.
  case any
  /// The open is refused.
  case refused
  /// The store opens, and nothing is lost or refused.
  case nothing
  /// The store opens, and only this key is refused.
  case key([UInt8])
  /// The store opens in exactly this state of its history, and nothing is refused. Later writes
  /// were not durable, and are dropped.
  case state(Int)
}

/// The layout of an undamaged store's files, which shows what a flipped bit may cost.
package struct DamageMap: Sendable {
  private let store: DamagedStore
  /// The records of each segment that the manifest lists.
  private var places: [String: [StoredRecord]] = [:]
  /// An open takes the records before this offset of a segment from the checkpoint.
  private var coveredEnds: [String: Int] = [:]
  /// Damage to a record beyond this version may look like a write that a crash left unfinished.
  private let provenVersion: UInt64

  package init(_ store: DamagedStore) {
    self.store = store
    // After a kill, only the last write may be missing.
    provenVersion =
      switch store.kind {
      case .closed: .max
      case .killed: store.lastVersions[store.history.count - 2]
      case .powerCut: store.lastVersions[store.durable]
      }
    guard let manifest = store.manifest else { return }
    for id in manifest.sealedSegments.map(\.id) + manifest.openSegments.map(\.id) {
      places[FileName.segment(id)] = store.records(in: FileName.segment(id))
    }
    for covered in store.checkpoint?.segments ?? [] {
      coveredEnds[FileName.segment(covered.id)] = covered.end
    }
  }

  /// The ends of the records of a segment, with their versions.
  package func ends(in name: String) -> [(end: Int, version: UInt64)] {
    (places[name] ?? []).map { ($0.range.upperBound, $0.version) }
  }

  /// What may happen to the store when a bit of a byte is flipped.
  package func outcome(of name: String, at offset: Int) -> DamageOutcome {
    // A checksum covers the whole manifest.
    if name == FileName.manifest { return .refused }
    // The spare and the reserve are overwritten. Only the length of the lock file matters: it can
    // request a recovery that trusts no page, which still finds everything in a sound store. A
    // damaged checkpoint costs time. Other files that the manifest does not list are not part of
    // the store.
    guard let places = places[name] else { return .nothing }
    if offset < SegmentHeader.byteCount { return .refused }
    guard let place = places.first(where: { $0.range.contains(offset) }) else {
      // Beyond the end of the log.
      return .nothing
    }
    // The padding.
    if offset >= place.value.upperBound { return .nothing }
    let isNewest = store.history.last?[place.key]?.info.version == place.version
    let isHead = offset < place.value.lowerBound
    if isHead, let end = coveredEnds[name], place.range.upperBound <= end {
      // Found when its key is read, if ever.
      return isNewest && place.header.kind == .put ? .key(place.key) : .nothing
    }
    if place.version > provenVersion {
      return .state(store.lastVersions.lastIndex { $0 < place.version } ?? 0)
    }
    if isHead { return .refused }
    return isNewest ? .key(place.key) : .nothing
  }
}
