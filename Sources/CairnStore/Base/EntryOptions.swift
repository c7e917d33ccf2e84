/// The options of a write: cost, lifetime, idle limit, metadata and tags of the entry. A write takes an option that is `nil` from
/// the configuration; an update takes it from the entry.
///
///     try store.setValue("alice", forKey: "session/1", options: .lifetime(.hours(1)))
///     try cache.setValue(page, forKey: url, options: EntryOptions(cost: 3, metadata: tag))
public struct EntryOptions: Sendable, Hashable {
  /// What the entry costs, in units of the caller's choice. Below 0 is as 0.
  public var cost: Int?
  /// How long the entry lives from the write on: its time to live.
  public var lifetime: Lifetime?
  /// How long the entry may go without being read or written, within 1 %: its time to idle.
  public var idleLimit: Duration?
  /// Bytes kept beside the value on disk: up to 65,535, in a cache up to 65,527. A cache in memory keeps none.
  public var metadata: [UInt8]? {
    get { isMetadataGiven ? metadataBytes : nil }
    set { (isMetadataGiven, metadataBytes) = (newValue != nil, newValue ?? []) }
  }
  /// Names that the entry has in common with others, so that `DiskCache.removeAll(tagged:)` removes them together: up to
  /// 32, each of 1 to 255 bytes of UTF-8. A ``/CairnStore/Store`` refuses them, and a cache in memory keeps none. Surrogate
  /// keys, as HTTP caches call them.
  public var tags: [String]?
  /// Empty where none are given.
  @usableFromInline package var metadataBytes: [UInt8]
  @usableFromInline var isMetadataGiven: Bool
  /// Whether the metadata is what a cache makes of its own, of the tags and of the caller's.
  @usableFromInline package var isMetadataEncoded = false
  /// Whether the entry ends no earlier than the entry that it replaces. Somebody may have extended that one since an update
  /// read it.
  @usableFromInline package var keepsEnd = false

  /// Makes options.
  ///
  /// - Parameters: as the properties of these names.
  @inlinable
  public init(
    cost: Int? = nil, lifetime: Lifetime? = nil, idleLimit: Duration? = nil,
    metadata: [UInt8]? = nil, tags: [String]? = nil
  ) {
    self.cost = cost
    self.lifetime = lifetime
    self.idleLimit = idleLimit
    isMetadataGiven = metadata != nil
    metadataBytes = metadata ?? []
    self.tags = tags
  }

  /// Everything as the configuration says.
  @inlinable public static var standard: EntryOptions { EntryOptions() }

  /// A cost of its own.
  @inlinable
  public static func cost(_ cost: Int?) -> EntryOptions { EntryOptions(cost: cost) }

  /// A lifetime of its own.
  @inlinable
  public static func lifetime(_ lifetime: Lifetime?) -> EntryOptions {
    EntryOptions(lifetime: lifetime)
  }

  /// An idle limit of its own.
  @inlinable
  public static func idleLimit(_ limit: Duration?) -> EntryOptions {
    EntryOptions(idleLimit: limit)
  }

  /// Bytes beside the value.
  @inlinable
  public static func metadata(_ bytes: [UInt8]?) -> EntryOptions { EntryOptions(metadata: bytes) }

  /// Tags of the entry.
  @inlinable
  public static func tags(_ tags: [String]?) -> EntryOptions { EntryOptions(tags: tags) }

  /// Gives them the bytes that a cache stores beside the value, which hold the tags too.
  @inlinable
  package mutating func setEncoded(metadata bytes: [UInt8]) {
    metadataBytes = bytes
    isMetadataGiven = true
    isMetadataEncoded = true
    tags = nil
  }

  /// The options of an update: `nil` is replaced by what the entry has.
  package func keeping(_ info: EntryInfo?, metadata: [UInt8]?) -> EntryOptions {
    var options = self
    options.metadata = self.metadata ?? metadata
    // Of what has expired nothing is kept.
    guard let info else { return options }
    options.cost = cost ?? info.cost
    options.lifetime = lifetime ?? info.expires.map { .until($0) } ?? .unlimited
    options.idleLimit = idleLimit ?? info.idleLimit
    options.keepsEnd = lifetime == nil
    return options
  }
}
