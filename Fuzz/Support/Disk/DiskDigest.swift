internal import CairnStore

/// Represents everything on a disk without unsynced changes: names, lengths and bytes.
struct DiskDigest: Hashable {
  private(set) var first: UInt64 = 0x243F_6A88_85A3_08D3
  private var second: UInt64 = 0x1319_8A2E_0370_7344

  fileprivate mutating func add(_ word: UInt64) {
    first = (first ^ word) &* 0x9E37_79B9_7F4A_7C15
    first ^= first >> 32
    second = (second ^ word) &* 0xD6E8_FEB8_6659_FD93
    second ^= second >> 29
  }

  fileprivate mutating func add(_ bytes: [UInt8]) {
    add(UInt64(bytes.count))
    let span = bytes.rawSpan
    let wordEnd = span.byteCount & ~7
    for offset in stride(from: 0, to: wordEnd, by: 8) {
      add(unsafe span.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }
    for offset in wordEnd..<span.byteCount { add(UInt64(span.load(UInt8.self, at: offset))) }
  }
}

extension SimulatedDisk {
  /// Covers the contents of the disk and the run of the machine. An open finds the same on disks
  /// with equal digests.
  var digest: DiskDigest {
    var digest = DiskDigest()
    func add(_ directory: SimulatedFile) {
      digest.add(UInt64(directory.diskNames.count))
      for (name, file) in directory.diskNames.sorted(by: { $0.key < $1.key }) {
        digest.add(Array(name.utf8))
        digest.add(file.isDirectory ? 1 : 0)
        if file.isDirectory {
          add(file)
        } else {
          digest.add(UInt64(file.diskByteCount))
          digest.add(file.disk)
        }
      }
    }
    digest.add(bootIdentifier)
    add(root)
    return digest
  }

  /// How many names and states a power cut may either keep or lose.
  struct Unsettled {
    var names = 0
    var states = 0

    /// Whether there are new possibilities. Fewer do not count: a sync removes some.
    func exceeds(_ other: Unsettled) -> Bool { names > other.names || states > other.states }
  }

  var unsettled: Unsettled {
    func states(_ directory: SimulatedFile) -> Int {
      directory.names.values.reduce(0) { $0 + ($1.isDirectory ? states($1) : $1.stateCount) }
    }
    return Unsettled(names: changes.count, states: states(root))
  }
}
