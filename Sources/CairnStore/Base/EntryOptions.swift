/// The options of a write: cost, lifetime, idle limit, metadata and tags of the entry.
/// If an option is `nil`, a set uses the configured value, and an update keeps the entry's current
/// one.
///
///     try store.setValue("alice", forKey: "session/1", options: .metadata(tag))
///     try cache.setValue(page, forKey: url, options: EntryOptions(cost: 3, metadata: tag))
public struct EntryOptions: Sendable, Hashable {
  /// The cost of the entry, in units of the caller's choice. A negative cost counts as 0.
  public var cost: Int?
  /// How long the entry lives after the write: its time to live.
  public var lifetime: Lifetime?
  /// How long the entry may go without a read or write, accurate to 1 %: its time to idle.
  public var idleLimit: Duration?
  /// Bytes of your own, stored with the value on disk: up to 65,535, or up to 65,527 in a cache. A
  /// cache in memory does not keep them.
  public var metadata: [UInt8]? {
    get { isMetadataGiven ? metadataBytes : nil }
    set { (isMetadataGiven, metadataBytes) = (newValue != nil, newValue ?? []) }
  }
  /// Names for groups of entries that `DiskCache.removeAll(tagged:)` removes together: up to 32,
  /// each of 1 to 255 bytes of UTF-8. Tags and metadata share the same space. A
  /// ``/CairnStore/Store`` refuses tags, and a cache in memory ignores them. HTTP caches call them
  /// surrogate keys.
  public var tags: [String]?
  /// The metadata; empty if there is none.
  @usableFromInline package var metadataBytes: [UInt8]
  @usableFromInline var isMetadataGiven: Bool
  /// Whether the metadata is in the form that a cache stores, including its tags.
  @usableFromInline package var isMetadataEncoded = false
  /// Whether the entry has no idle limit, not even the configured one, because the entry that an
  /// update replaces has none.
  @usableFromInline package var isNeverIdle = false
}

extension EntryOptions {
  /// Makes options.
  ///
  /// - Parameters: see the properties of the same names.
  @inlinable
  public init(
    cost: Int? = nil, lifetime: Lifetime? = nil, idleLimit: Duration? = nil,
    metadata: [UInt8]? = nil, tags: [String]? = nil
  ) {
    self.init(cost, lifetime, idleLimit, metadata ?? [], metadata != nil, tags)
  }

  // In an extension, because an initializer that sets the properties one by one makes a copy.
  @usableFromInline
  init(
    _ cost: Int?, _ lifetime: Lifetime?, _ idleLimit: Duration?, _ metadata: [UInt8],
    _ isMetadataGiven: Bool, _ tags: [String]?
  ) {
    self.init(
      cost: cost, lifetime: lifetime, idleLimit: idleLimit, tags: tags, metadataBytes: metadata,
      isMetadataGiven: isMetadataGiven)
  }

  /// Everything as configured.
  @inlinable public static var standard: EntryOptions { EntryOptions() }

  /// Sets the cost.
  @inlinable
  public static func cost(_ cost: Int?) -> EntryOptions { EntryOptions(cost: cost) }

  package static func lifetime(_ lifetime: Lifetime?) -> EntryOptions {
    EntryOptions(lifetime: lifetime)
  }

  package static func idleLimit(_ limit: Duration?) -> EntryOptions {
    EntryOptions(idleLimit: limit)
  }

  /// The options with another lifetime, or unchanged with `nil`.
  @inlinable
  package func with(_ lifetime: Lifetime?) -> EntryOptions {
    guard let lifetime else { return self }
    var options = self
    options.lifetime = lifetime
    return options
  }

  /// Sets the metadata.
  @inlinable
  public static func metadata(_ bytes: [UInt8]?) -> EntryOptions { EntryOptions(metadata: bytes) }

  /// Sets the metadata to text, as UTF-8.
  @inlinable
  public static func metadata(_ text: String) -> EntryOptions {
    EntryOptions(metadata: Array(text.utf8))
  }

  /// Sets the tags.
  @inlinable
  public static func tags(_ tags: [String]?) -> EntryOptions { EntryOptions(tags: tags) }

  /// The options with the metadata that a cache stores with the value, which include the tags.
  package func encoded(metadata bytes: [UInt8]) -> EntryOptions {
    EntryOptions(
      cost: cost, lifetime: lifetime, idleLimit: idleLimit, tags: nil, metadataBytes: bytes,
      isMetadataGiven: true, isMetadataEncoded: true, isNeverIdle: isNeverIdle)
  }

  /// The options of an update: where an option is `nil`, the entry keeps its own.
  @usableFromInline
  package func keeping<Key, Value>(_ entry: Entry<Key, Value>?) -> EntryOptions {
    keeping(entry?.info, metadata: entry?.metadata)
  }

  @usableFromInline
  package func keeping(_ info: EntryInfo?, metadata: [UInt8]?) -> EntryOptions {
    var options = self
    options.metadata = self.metadata ?? metadata
    // An update keeps nothing from an expired entry.
    guard let info else { return options }
    options.cost = cost ?? info.givenCost
    options.lifetime = lifetime ?? info.expires.map { .until($0) } ?? .unlimited
    options.idleLimit = idleLimit ?? info.idleLimit
    options.isNeverIdle = options.idleLimit == nil
    return options
  }
}
