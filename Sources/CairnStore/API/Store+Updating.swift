extension Store {
  /// Changes the value of a key, without losing concurrent changes.
  ///
  ///     try store.update(forKey: "visits") { value in
  ///       let count = value.flatMap { Int(String(decoding: $0, as: UTF8.self)) } ?? 0
  ///       return Array(String(count + 1).utf8)
  ///     }
  ///
  /// The call reads the value, calls `change`, and writes the result unless another caller has
  /// written the key in the meantime. In that case it starts over, so `change` may run more than
  /// once and must have no side effects. `change` runs outside all locks and may use the store,
  /// but must not write this key: each attempt would then fail, without end.
  ///
  /// - Parameters:
  ///   - key: 1 to 65,535 bytes.
  ///   - lifetime: how long the entry lives. `nil` means that of the options.
  ///   - options: if an option is `nil`, an existing entry keeps its own, and a new entry gets the
  ///     configured one. A lifetime counts from now.
  ///   - durability: `nil` for the configured class.
  ///   - change: makes the new value from the current value, or from `nil` if the key has none.
  ///     Returning `nil` removes the value.
  /// - Returns: the new value and its version, or `nil` if the key now has no value. If the key had
  ///   none before, the call writes nothing and waits for no sync.
  /// - Throws: any error of `change`, unchanged, and the errors of `entry(forKey:)`, such as
  ///   `corrupt` for a damaged value; nothing is then written. Otherwise see `setValue` and
  ///   `compareAndRemove`.
  /// - Complexity: O(key + value) for each attempt. If several callers change a key at once, one of
  ///   them always succeeds.
  @inlinable
  @discardableResult
  public func update(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable,
    lifetime: Lifetime? = nil, options: EntryOptions = .standard, durability: Durability? = nil,
    _ change: (_ value: [UInt8]?) throws -> [UInt8]?
  ) throws -> (value: [UInt8], version: UInt64)? {
    try key.withBytes { (key) throws in
      try updateEntry(forKey: key, durability: durability) { entry in
        try change(entry?.value).map { ($0, options.with(lifetime).keeping(entry)) }
      }
    }
  }

  /// Like `update`, but `change` gets the whole entry and also returns the options.
  @usableFromInline
  package func updateEntry(
    forKey key: RawSpan, durability: Durability?,
    _ change: (ByteEntry?) throws -> (value: [UInt8], options: EntryOptions)?
  ) throws -> (value: [UInt8], version: UInt64)? {
    while true {
      let entry = try currentReader.entry(forKey: key)
      let version = entry?.info.version
      if let (value, options) = try change(entry) {
        let result = try value.withBytes { (bytes) throws(StoreError) in
          try engine.compareAndSet(
            bytes, forKey: key, expecting: version, options: options, durability: durability)
        }
        if case .stored(let version) = result { return (value, version) }
      } else {
        guard let version else { return nil }
        if try engine.removeValue(forKey: key, expecting: version, durability: durability) {
          return nil
        }
      }
    }
  }

  /// Removes the value of a key and returns it. If several callers take a value at once, only one
  /// gets it.
  ///
  /// - Returns: the value, or `nil` if the key had no unexpired value. In that case the call writes
  ///   nothing and waits for no sync.
  /// - Throws: see `value(forKey:)` and `compareAndRemove`. Nothing was removed, except after
  ///   `durabilityUnknown`: the value is then gone, and the caller does not receive it.
  /// - Complexity: O(key + value).
  @inlinable
  public func takeValue(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable, durability: Durability? = nil
  ) throws(StoreError) -> [UInt8]? {
    try key.withBytes { (key) throws(StoreError) in
      while let entry = try currentReader.entry(forKey: key) {
        let isTaken = try engine.removeValue(
          forKey: key, expecting: entry.info.version, durability: durability)
        if isTaken { return entry.value }
      }
      return nil
    }
  }

  // MARK: Counters

  /// The number of a counter, or `nil` if the key has no unexpired value. Counts as an access. See
  /// `increment`.
  ///
  /// - Throws: `notACounter`; otherwise see `value(forKey:)`.
  public func counter(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable
  ) throws(StoreError) -> Int64? {
    guard let value = try value(forKey: key) else { return nil }
    return try Increment.number(value)
  }

  /// Adds to a counter without losing concurrent additions, and returns the new number.
  ///
  ///     let visits = try store.increment(forKey: "visits")
  ///
  /// A counter is an 8-byte value: a signed, little-endian 64-bit integer. An existing entry keeps
  /// its cost, expiry, idle limit and metadata.
  ///
  /// - Parameters:
  ///   - key: 1 to 65,535 bytes. An absent key counts as 0.
  ///   - amount: may be negative.
  ///   - lifetime: how long a new counter lives. `nil` means that of the options.
  ///   - options: used only if the counter is absent.
  ///   - durability: `nil` for the configured class.
  /// - Returns: the new number.
  /// - Throws: `notACounter`; nothing is then written. Otherwise see `update`.
  /// - Complexity: O(key) for each attempt. If several callers change a key at once, one of them
  ///   always succeeds.
  @inlinable
  @discardableResult
  public func increment(
    forKey key: borrowing some ByteSource & ~Copyable & ~Escapable, by amount: Int64 = 1,
    lifetime: Lifetime? = nil, options: EntryOptions = .standard, durability: Durability? = nil
  ) throws(StoreError) -> Int64 {
    try key.withBytes { (key) throws(StoreError) in
      try increment(
        key, by: amount, options: options.with(lifetime), durability: durability)
    }
  }

  @usableFromInline
  func increment(
    _ key: RawSpan, by amount: Int64, options: EntryOptions, durability: Durability?
  ) throws(StoreError) -> Int64 {
    while true {
      let increment = try Increment(currentReader.entry(forKey: key), by: amount, options)
      let result = try increment.value.withBytes { (bytes) throws(StoreError) in
        try engine.compareAndSet(
          bytes, forKey: key, expecting: increment.version, options: increment.options,
          durability: durability)
      }
      if case .stored = result { return increment.number }
    }
  }
}

/// What an increment writes, given the entry that it read.
struct Increment {
  let number: Int64
  let version: UInt64?
  let options: EntryOptions

  static func number(_ value: [UInt8]) throws(StoreError) -> Int64 {
    guard value.count == 8 else {
      throw .notACounter(
        reason: "the value is not a counter: it has \(value.count) bytes, and a counter has 8")
    }
    return value.reversed().reduce(0) { $0 << 8 | Int64($1) }
  }

  init(_ entry: ByteEntry?, by amount: Int64, _ options: EntryOptions) throws(StoreError) {
    version = entry?.info.version
    var old: Int64 = 0
    if let entry {
      old = try Self.number(entry.value)
      self.options = EntryOptions.standard.keeping(entry)
    } else {
      self.options = options
    }
    let (sum, isTooLarge) = old.addingReportingOverflow(amount)
    if isTooLarge { throw .notACounter(reason: "the counter would overflow 64 bits") }
    number = sum
  }

  /// The number, encoded as a counter.
  var value: [UInt8] { (0..<8).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) } }
}
