import Cairn
import Configuration

/// The path and configuration of a cache, read by swift-configuration.
///
///     let config = ConfigReader(provider: EnvironmentVariablesProvider())
///     let settings = try CacheSettings(config, section: "pages")
///     let pages = try await DiskCache<String, Page>.open(
///       .path(settings.path), configuration: settings.configuration)
///
/// | key | in the environment | such as |
/// |---|---|---|
/// | `pages.path` | `PAGES_PATH` | `/var/cache/example/pages`; must be set |
/// | `pages.countLimit` | `PAGES_COUNT_LIMIT` | `100000` |
/// | `pages.byteLimit` | `PAGES_BYTE_LIMIT` | `1GiB` |
/// | `pages.diskByteLimit` | `PAGES_DISK_BYTE_LIMIT` | `2GiB` |
/// | `pages.freeDiskSpaceFloor` | `PAGES_FREE_DISK_SPACE_FLOOR` | `5GiB` |
/// | `pages.lifetime` | `PAGES_LIFETIME` | `12h` |
/// | `pages.idleLimit` | `PAGES_IDLE_LIMIT` | `7d` |
/// | `pages.durability` | `PAGES_DURABILITY` | `process`, `1s`, `durable` |
/// | `pages.memory.countLimit` | `PAGES_MEMORY_COUNT_LIMIT` | `1000` |
/// | `pages.memory.costLimit` | `PAGES_MEMORY_COST_LIMIT` | `64MiB` |
/// | `pages.loads.staleOnError` | `PAGES_LOADS_STALE_ON_ERROR` | `10m` |
/// | `pages.loads.staleWhileRevalidating` | `PAGES_LOADS_STALE_WHILE_REVALIDATING` | `30s` |
/// | `pages.loads.timeLimit` | `PAGES_LOADS_TIME_LIMIT` | `10s` |
///
/// Missing settings keep their values from `base`. An invalid setting causes a `SettingError`,
/// which names its key. A cache must have a limit, from the settings or from `base`, because a
/// cache without one fills the disk.
public struct CacheSettings: Sendable {
  public var path: String
  public var configuration: DiskCacheConfiguration

  /// Reads the settings of a cache.
  ///
  /// - Parameters:
  ///   - reader: provides the settings.
  ///   - section: the first part of each key.
  ///   - base: the values of missing settings.
  public init(
    _ reader: ConfigReader, section name: String,
    base: DiskCacheConfiguration = DiskCacheConfiguration()
  ) throws(SettingError) {
    let section = Section(name: name, reader: reader)
    path = try section.required("path")
    configuration = base
    try configuration.store.apply(section)
    try configuration.loadPolicy.apply(section)
    let count = try section.count("memory.countLimit")
    let cost = try section.byteCount("memory.costLimit")
    if count != nil || cost != nil {
      var memory =
        configuration.memory ?? MemoryConfiguration()
      memory.countLimit = count ?? memory.countLimit
      memory.costLimit = cost ?? memory.costLimit
      configuration.memory = memory
    }
    if (configuration.countLimit ?? configuration.byteLimit ?? configuration.diskByteLimit) == nil {
      throw section.error("byteLimit", nil, "this, countLimit or diskByteLimit must be set")
    }
  }
}

/// The path and configuration of a store: `path`, and the keys of `CacheSettings` from `countLimit`
/// to `durability`. A store needs no limits.
public struct StoreSettings: Sendable {
  public var path: String
  public var configuration: StoreConfiguration

  /// Reads the settings of a store; the parameters are those of `CacheSettings`.
  public init(
    _ reader: ConfigReader, section name: String, base: StoreConfiguration = StoreConfiguration()
  ) throws(SettingError) {
    let section = Section(name: name, reader: reader)
    path = try section.required("path")
    configuration = base
    try configuration.apply(section)
  }
}

extension StoreConfiguration {
  fileprivate mutating func apply(_ section: Section) throws(SettingError) {
    countLimit = try section.count("countLimit") ?? countLimit
    byteLimit = try section.byteCount("byteLimit") ?? byteLimit
    diskByteLimit = try section.byteCount("diskByteLimit") ?? diskByteLimit
    freeDiskSpaceFloor = try section.byteCount("freeDiskSpaceFloor") ?? freeDiskSpaceFloor
    lifetime = try section.duration("lifetime").map { .after($0) } ?? lifetime
    idleLimit = try section.duration("idleLimit") ?? idleLimit
    durability = try section.durability("durability") ?? durability
  }
}

extension LoadPolicy {
  fileprivate mutating func apply(_ section: Section) throws(SettingError) {
    staleOnError = try section.duration("loads.staleOnError") ?? staleOnError
    staleWhileRevalidating =
      try section.duration("loads.staleWhileRevalidating") ?? staleWhileRevalidating
    timeLimit = try section.duration("loads.timeLimit") ?? timeLimit
  }
}
