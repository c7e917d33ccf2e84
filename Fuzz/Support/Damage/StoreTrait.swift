import CairnStore

/// What a store on disk can contain: files, segments and records.
package enum StoreTrait: String, CaseIterable, Sendable {
  case lock = "LOCK"
  case manifest = "a manifest"
  case spareManifest = "a spare manifest"
  case reserve = "a reserve"
  case checkpoint = "a checkpoint"
  case checkpointOldest = "a checkpoint's oldest entries"
  case overtakenCheckpoint = "a checkpoint of a segment that was compacted since"
  case openSegment = "an open segment"
  case rolledSegment = "an open segment that has rolled"
  case sealedSegment = "a sealed segment"
  case compactedSegment = "a compacted segment"
  case unorderedNumbers = "numbers out of order"
  case put = "a put"
  case tombstone = "a tombstone"
  case keptTombstone = "a tombstone that a compaction kept"
  case roll = "a roll"
  case expiry = "an expiry"
  case idleLimit = "an idle limit"
  case cost = "a cost"
  case metadata = "metadata"
  case batch = "a batch"
  case syncMark = "a sync mark"
}

extension DamagedStore {
  /// What the files of the store contain.
  package var traits: Set<StoreTrait> {
    var traits: Set<StoreTrait> = []
    let names: [(String, StoreTrait)] = [
      (FileName.lock, .lock), (FileName.manifest, .manifest),
      (FileName.newManifest, .spareManifest), (FileName.reserve, .reserve),
    ]
    for (name, trait) in names where files[name] != nil { traits.insert(trait) }
    guard let manifest else { return traits }
    if let checkpoint {
      traits.insert(.checkpoint)
      if checkpoint.oldestCount > 0 { traits.insert(.checkpointOldest) }
      let listed = Set(manifest.sealedSegments.map(\.id) + manifest.openSegments.map(\.id))
      if checkpoint.segments.contains(where: { !listed.contains($0.id) && $0.livePutCount > 0 }) {
        traits.insert(.overtakenCheckpoint)
      }
    }
    for segment in manifest.openSegments {
      let found = records(in: FileName.segment(segment.id))
      traits.insert(.openSegment)
      if found.last?.header.kind == .roll { traits.insert(.rolledSegment) }
      for record in found { traits.formUnion(self.traits(of: record)) }
    }
    for segment in manifest.sealedSegments {
      let found = records(in: FileName.segment(segment.id))
      traits.insert(.sealedSegment)
      for record in found { traits.formUnion(self.traits(of: record)) }
      if segment.compactedAt == 0 { continue }
      traits.insert(.compactedSegment)
      if found.contains(where: { $0.header.kind == .tombstone }) { traits.insert(.keptTombstone) }
      if zip(found, found.dropFirst()).contains(where: { $0.version > $1.version }) {
        traits.insert(.unorderedNumbers)
      }
    }
    return traits
  }

  private func traits(of record: StoredRecord) -> Set<StoreTrait> {
    var traits: Set<StoreTrait> = []
    let header = record.header
    switch header.kind {
    case .put: traits.insert(.put)
    case .tombstone: traits.insert(.tombstone)
    case .roll: traits.insert(.roll)
    }
    let flags: [(RecordFlags, StoreTrait)] = [
      (.batch, .batch), (.syncMark, .syncMark), (.expiry, .expiry), (.idleLimit, .idleLimit),
      (.cost, .cost), (.metadata, .metadata),
    ]
    for (flag, trait) in flags where header.flags.contains(flag) { traits.insert(trait) }
    return traits
  }
}
