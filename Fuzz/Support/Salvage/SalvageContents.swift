import CairnRepair
import CairnStore

/// What was written for a key, without the time of the write.
struct SalvageValue: Hashable {
  var bytes: [UInt8]
  var metadata: [UInt8] = []
  var expires: Timestamp?
  var idleLimit: Duration?
  var cost: Int?

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  init(_ entry: ByteEntry) {
    bytes = entry.value
    metadata = entry.metadata
    expires = entry.info.expires
    idleLimit = entry.info.idleLimit
    cost = entry.info.givenCost
  }
}

/// What an open of a store returns.
struct SalvageContents: Equatable {
  /// Each key with its entry, or `nil` if it is damaged; without the time of the last access.
  var entries: [[UInt8]: ByteEntry?] = [:]
  var lastVersion: UInt64 = 0

  /// Opens the store in a separate process. `nil` if the open is refused.
  init?(of path: String, on disk: SimulatedDisk, seed: UInt64) {
    let process = SimulatedProcess.start(on: disk, seed: seed)
    defer { process.kill() }
    do {
      var configuration = StoreConfiguration.simulated(ManualClock())
      // With system calls, an unreadable sector is an error, not a signal.
      configuration.mapsFiles = false
      let store = try Store(
        path: path, configuration: configuration, environment: process.environment, readOnly: true)
      var keys: [[UInt8]] = []
      try store.forEachKey { key in
        keys.append([UInt8](copying: key))
        return .next
      }
      for key in keys {
        var entry = try? store.entry(forKey: key)
        if let written = entry?.info.written { entry?.info.accessed = written }
        entries[key] = .some(entry)
      }
      lastVersion = try store.statistics().lastVersion
    } catch {
      return nil
    }
  }

  /// What a salvage must have copied, as far as the report promises.
  func copied(_ report: SalvageReport) -> [[UInt8]: ByteEntry] {
    entries.compactMapValues { $0 }.mapValues { entry in
      var entry = entry
      if report.kinds.contains(.versionsChanged) { entry.info.version = 0 }
      if report.kinds.contains(.writtenTimesLost) {
        entry.info.written = ManualClock.start
        entry.info.accessed = ManualClock.start
      }
      return entry
    }
  }
}

/// Takes images of the disk during a salvage, as a power cut and a kill would leave it.
final class SalvageWatch {
  private(set) var images: [SimulatedDisk] = []
  private let path: String
  private let disk: SimulatedDisk
  private var random: FuzzRandom

  init(_ path: String, on disk: SimulatedDisk, random: FuzzRandom) {
    self.path = path
    self.disk = disk
    self.random = random
  }

  /// Called before each call of the process that salvages.
  func look() {
    let names = disk.names(at: path)
    guard !names.isEmpty, images.count < 4 else { return }
    // Most faults can occur when the copy becomes a store.
    let isAtEnd = names.contains(FileName.newManifest) || names.contains(FileName.manifest)
    guard random.once(in: isAtEnd ? 3 : 12) else { return }
    if random.once(in: 3) {
      images.append(disk.settled())
    } else {
      images.append(cut())
    }
  }

  /// The disk as a power cut now would leave it.
  func cut() -> SimulatedDisk {
    var chooser = RandomCut(random.split())
    return disk.afterPowerCut(&chooser)
  }
}
