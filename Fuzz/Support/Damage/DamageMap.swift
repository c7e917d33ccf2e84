import CairnStore

/// What may become of a store in which one bit is flipped.
package enum DamageOutcome: Sendable {
  /// An error, the right values, or a state no older than the oldest that may be found.
  case any
  /// The store opens, and nothing is lost or refused.
  case nothing
  /// The store opens, and just this key is refused.
  case key([UInt8])
  /// The store opens with just this state of its history, and nothing is refused: what came later
  /// was not durable, and is dropped.
  case state(Int)
}

/// What lies where in the files of an undamaged store, and so what a flipped bit may cost.
package struct DamageMap: Sendable {
  /// A record in a segment.
  private struct Place {
    var range: Range<Int>
    var values: Range<Int>
    var key: [UInt8]
    var version: UInt64
  }

  private let store: DamagedStore
  private var places: [String: [Place]] = [:]
  /// Of a record beyond this version damage may pass for what a crash left unfinished.
  private let provenVersion: UInt64

  package init(_ store: DamagedStore) {
    self.store = store
    // After the death of a process the last write alone may be missing.
    provenVersion =
      switch store.kind {
      case .closed: .max
      case .killed: store.lastVersions[store.history.count - 2]
      case .powerCut: store.lastVersions[store.durable]
      }
    for (name, bytes) in store.files where FileName.isSegment(name) {
      places[name] = Self.places(in: bytes)
    }
  }

  /// The records of a sound segment.
  private static func places(in bytes: [UInt8]) -> [Place] {
    bytes.withSpan { span in
      let base = span.load(UInt64.self, at: 48)
      var places: [Place] = []
      var offset = SegmentHeader.byteCount
      while let header = RecordHeader(
        decoding: span.extracting(offset..<span.byteCount), limit: span.byteCount - offset)
      {
        func absolute(_ range: Range<Int>) -> Range<Int> {
          (offset + range.lowerBound)..<(offset + range.upperBound)
        }
        places.append(
          Place(
            range: absolute(0..<header.byteCount), values: absolute(header.valueRange),
            key: Array(bytes[absolute(header.keyRange)]),
            version: base + UInt64(header.sequenceDelta)))
        offset += header.byteCount
      }
      return places
    }
  }

  /// Where the records of a segment end, with their versions.
  package func ends(in name: String) -> [(end: Int, version: UInt64)] {
    (places[name] ?? []).map { ($0.range.upperBound, $0.version) }
  }

  /// What may become of the store when a bit of a byte is flipped.
  package func outcome(of name: String, at offset: Int) -> DamageOutcome {
    // The spare is written over, and of the lock's file the length alone matters: it asks for a
    // recovery that trusts no page, which finds everything where everything is sound.
    if [FileName.newManifest, FileName.lock, FileName.reserve].contains(name) { return .nothing }
    guard let places = places[name], offset >= SegmentHeader.byteCount else { return .any }
    guard let place = places.first(where: { $0.range.contains(offset) }) else {
      // Beyond the end of the log.
      return .nothing
    }
    if offset < place.values.lowerBound { return .any }
    // The padding.
    if offset >= place.values.upperBound { return .nothing }
    if place.version > provenVersion {
      return .state(store.lastVersions.lastIndex { $0 < place.version } ?? 0)
    }
    let isNewest = store.history.last?[place.key]?.info.version == place.version
    return isNewest ? .key(place.key) : .nothing
  }
}
