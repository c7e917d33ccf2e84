import CairnLibC
import CairnRepair
import CairnStore
import FuzzSupport

/// One process of a churn run. It opens the store, compares all contents with the model, continues
/// where the last process died, and finally reports its resources.
struct Worker {
  let options: ChurnOptions
  private let plan: Plan
  private let progress: Progress
  private var model: Model
  private let files: ReadErrorFileSystem

  init(_ options: ChurnOptions) throws {
    self.options = options
    plan = Plan(seed: options.seed, keyCount: options.keyCount)
    progress = try Progress(path: options.directory + "/progress")
    model = Model(plan, countLimit: options.countLimit)
    files = ReadErrorFileSystem(Environment.system().fileSystem)
  }

  private var storePath: String { options.directory + "/store" }

  mutating func run() throws {
    let acknowledged = progress.acknowledged
    let skipped = progress.skipped
    for number in 0..<acknowledged where !skipped.contains(number) { model.apply(number) }
    model.forgetReads()
    var configuration = StoreConfiguration()
    configuration.log = .silent
    configuration.durability = .process
    configuration.segmentByteLimit = options.segmentByteLimit
    configuration.countLimit = options.countLimit
    configuration.maintenanceInterval = .milliseconds(200)
    let store = try open(configuration)
    let began = progress.begun
    var next = acknowledged
    if began > acknowledged {
      if try !model.settle(acknowledged, in: store) { progress.skip(acknowledged) }
      next += 1
      progress.acknowledged = next
    }
    // Wait until every short-lived entry has expired.
    usleep(50_000)
    try model.checkAll(store)

    var samples: [Resources] = []
    var worstRatio = 0.0
    var isSound = true
    var nextSample = next
    var written = progress.writtenByteCount
    while written < options.byteCount {
      written += try perform(next, store)
      next += 1
      if isSound, written >= options.byteCount / 4 {
        if options.failsRead { files.arm() }
        isSound = options.damages ? try !damage(store) : false
      }
      if next >= nextSample {
        progress.writtenByteCount = written
        nextSample += options.sampleInterval
        samples.append(try Resources.current(store: storePath))
        worstRatio = max(worstRatio, try ratio(store))
      }
    }
    progress.writtenByteCount = written
    try finish(store, samples, worstRatio)
  }

  /// Performs an operation and returns how many bytes of values it wrote.
  private mutating func perform(_ number: Int, _ store: Store) throws -> Int {
    var written = 0
    progress.begun = number + 1
    switch plan[number] {
    case .put(let key):
      let value = plan.value(of: number, for: key)
      written = value.count
      try store.setValue(value, forKey: plan.keyBytes(key))
    case .putShortLived(let key):
      let value = plan.value(of: number, for: key)
      written = value.count
      try store.setValue(value, forKey: plan.keyBytes(key), lifetime: Plan.shortLife)
    case .remove(let key): try store.removeValue(forKey: plan.keyBytes(key))
    case .batch(let keys):
      try store.write { batch in
        for key in keys {
          let value = plan.value(of: number, for: key)
          written += value.count
          try batch.setValue(value, forKey: plan.keyBytes(key))
        }
      }
    case .get(let key):
      do {
        let value = try store.value(forKey: plan.keyBytes(key))
        try model.check(key, value)
        if value != nil { model.noteRead(key) }
      } catch let error as StoreError {
        guard case .corrupt = error, model.mayBeDamaged(key) else { throw error }
      }
    }
    model.apply(number)
    progress.acknowledged = number + 1
    return written
  }

  /// Flips a bit of the sealed segment with the most live bytes. Returns `false` if a compaction has
  /// just removed it.
  private mutating func damage(_ store: Store) throws -> Bool {
    let segments = try store.statistics().segments.filter(\.isSealed)
    guard let segment = segments.max(by: { $0.liveByteCount < $1.liveByteCount }) else {
      return false
    }
    let name = FileName.segment(SegmentID(rawValue: segment.id))
    let file = unsafe CairnLibC.open(storePath + "/" + name, O_RDWR | O_CLOEXEC)
    if file < 0 { return false }
    defer { CairnLibC.close(file) }
    var random = FuzzRandom(seed: options.seed)
    let offset = SegmentHeader.byteCount + random.below(segment.byteCount - SegmentHeader.byteCount)
    var byte: UInt8 = 0
    guard unsafe CairnLibC.pread(file, &byte, 1, off_t(offset)) == 1 else { return false }
    byte ^= 1
    guard unsafe CairnLibC.pwrite(file, &byte, 1, off_t(offset)) == 1 else { return false }
    print("damaged \(name) at \(offset)")
    model.hasDamage = true
    return true
  }

  /// Bytes on disk above the floor for each live byte. Below the floor, nothing is reclaimed.
  private func ratio(_ store: Store) throws -> Double {
    let statistics = try store.statistics()
    let excess = statistics.allocatedByteCount - options.floorByteCount
    return max(0, Double(excess)) / Double(max(1, statistics.liveByteCount))
  }

  private mutating func finish(
    _ store: Store, _ samples: [Resources], _ worstRatio: Double
  ) throws {
    try store.maintain()
    usleep(50_000)
    try model.checkAll(store)
    let statistics = try store.statistics()
    let ratio = try ratio(store)
    let end = try Resources.current(store: storePath)
    let middle = samples.isEmpty ? end : samples[samples.count / 2]
    print(
      """
      operations \(progress.acknowledged), \(progress.writtenByteCount >> 20) MiB written, \
      keys \(statistics.count), live \(statistics.liveByteCount >> 20) MiB, \
      allocated \(statistics.allocatedByteCount >> 20) MiB in \(statistics.segmentCount) segments, \
      tombstones \(statistics.tombstoneCount)
      allocated beyond \(options.floorByteCount >> 20) MiB / live: \(rounded(ratio)) at the end, \
      \(rounded(worstRatio)) at worst
      descriptors \(middle.descriptorCount) halfway, \(end.descriptorCount) at the end; mappings \
      \(middle.mappingCount), \(end.mappingCount), of deleted files \(end.deletedMappingCount); \
      anonymous memory \(middle.anonymousByteCount >> 10) KiB, \(end.anonymousByteCount >> 10) KiB
      """)
    try require(ratio <= options.spaceBound, "the space bound does not hold: \(ratio)")
    // Descriptors of the segments, the next segment, the lock, the directory, and this run itself.
    try require(
      end.descriptorCount <= statistics.segmentCount + 12,
      "\(end.descriptorCount) descriptors for \(statistics.segmentCount) segments")
    try require(
      end.mappingCount <= statistics.segmentCount + 2,
      "\(end.mappingCount) mappings for \(statistics.segmentCount) segments")
    try require(end.deletedMappingCount == 0, "deleted files are mapped")
    try require(!files.isPending, "no read failed")
    if samples.count >= 16 {
      try require(
        end.anonymousByteCount < middle.anonymousByteCount * 5 / 4 + (16 << 20),
        "anonymous memory grows")
    }
    try store.close()
    let reopened = try open(StoreConfiguration())
    try model.checkAll(reopened)
    try reopened.close()
    let report = try Store.verify(path: storePath)
    try require(report.errors.count <= (options.damages ? 1 : 0), "verify: \(report.errors)")
  }

  private func open(_ configuration: StoreConfiguration) throws -> Store {
    var environment = Environment.system()
    environment.fileSystem = DelayedSyncFileSystem(
      files, delay: options.syncDelay)
    return try Store(
      path: storePath, configuration: configuration, environment: environment, readOnly: false)
  }

  private func rounded(_ ratio: Double) -> Double { (ratio * 100).rounded() / 100 }

  private func require(_ holds: Bool, _ message: String) throws {
    if !holds { throw FuzzFailure(message) }
  }
}
