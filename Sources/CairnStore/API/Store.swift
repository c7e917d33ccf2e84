/// An embedded key-value store: bytes in, bytes out, in one directory.
///
/// Values are appended to a log of memory-mapped segments and found through a hash index in
/// memory. What an acknowledged write survives is the choice of ``Durability``. A damaged byte on
/// disk is an error for the key it belongs to, never a wrong value and never a missing one.
///
///     let store = try Store(path: "/var/lib/example/blobs")
///     try store.setValue("hello", forKey: "greeting", lifetime: .seconds(60))
///     let value = try store.value(forKey: "greeting")
///     try store.close()
///
/// All methods may be called from any thread; each is linearizable per key: it takes effect at
/// one moment between its call and its return. Calls block for as long as the memory or the disk
/// takes: a get or a set that stays in the page cache takes less than a thread hop, so they are
/// synchronous and fit async code as they are.
public final class Store: Sendable {
  @usableFromInline let engine: Engine

  /// The directory, as it was given.
  public let path: String

  /// Opens the store at a path for reading and writing, or makes one there.
  ///
  /// Opening reads the headers of all records (not the values); after a crash it also finds the
  /// end of the log.
  ///
  /// - Parameters:
  ///   - path: a directory. Its parent must exist. A new one gets mode 0700, its files 0600.
  ///   - configuration: see ``StoreConfiguration``.
  /// - Throws: `locked` where it is open already, here or in another process; `noStore` where
  ///   there is none and none is to be made; `corrupt` naming file and offset where a durable
  ///   part is damaged (nothing is changed then); `notAStore`, `unsafeFile`,
  ///   `unsupportedVersion`, `unsupportedFileSystem`, `invalidConfiguration`, `noSpace`, `system`.
  /// - Complexity: O(records).
  public init(
    path: String, configuration: StoreConfiguration = StoreConfiguration()
  ) throws(StoreError) {
    self.path = path
    engine = try Engine(
      path: path, configuration: configuration, environment: .system(), readOnly: false)
  }

  /// Opens the store at a path for reading. Nothing on disk is changed, also where the store was
  /// not closed. Several readers may have it open at once, but no writer beside them.
  ///
  /// - Throws: as `init(path:configuration:)`; every write throws `readOnly`.
  /// - Complexity: O(records).
  public init(
    readingAt path: String, configuration: StoreConfiguration = StoreConfiguration()
  ) throws(StoreError) {
    self.path = path
    engine = try Engine(
      path: path, configuration: configuration, environment: .system(), readOnly: true)
  }

  /// Opens a store in an environment of the caller's: for simulations.
  package init(
    path: String, configuration: StoreConfiguration, environment: Environment, readOnly: Bool
  ) throws(StoreError) {
    self.path = path
    engine = try Engine(
      path: path, configuration: configuration, environment: environment, readOnly: readOnly)
  }

  /// Closes the store, if `close` was not called. Errors are lost: call `close` to see them.
  deinit { try? engine.close() }

  // MARK: State

  /// How many keys a read would find.
  ///
  /// - Complexity: O(1) where no entry can expire, else O(keys).
  public func count() throws(StoreError) -> Int { try engine.count() }

  /// The state of the store.
  ///
  /// - Complexity: O(segments).
  public func statistics() throws(StoreError) -> StoreStatistics { try engine.statistics() }

  /// Makes every write durable that was acknowledged before the call, whatever class it asked for.
  ///
  /// - Throws: `durabilityUnknown` where the sync fails; the store is poisoned then: it takes no
  ///   more writes, reads go on, and opening it anew recovers what is on disk.
  public func sync() throws(StoreError) { try engine.sync() }

  /// Makes every write durable, marks the store clean and gives its lock up. Every later call
  /// throws `closed`; a second `close` does nothing.
  ///
  /// Nothing acknowledged is lost without it, but the next open must then find the end of the log.
  /// Zero-copy reads that are under way go on undisturbed.
  public func close() throws(StoreError) { try engine.close() }

  /// Checks every byte of every file of a store that nobody has open for writing.
  ///
  /// - Returns: what was found; damage is in the report, not thrown.
  /// - Throws: `locked`, `noStore`, `notAStore`, `unsafeFile`, `system`: where it could not be
  ///   checked.
  /// - Complexity: O(bytes). Takes memory for the manifest and a window of 1 MiB.
  public static func verify(path: String) throws(StoreError) -> VerificationReport {
    try Verifier.verify(path: path, environment: .system())
  }

  /// Checks a store in an environment of the caller's: for simulations.
  package static func verify(
    path: String, environment: Environment
  ) throws(StoreError) -> VerificationReport {
    try Verifier.verify(path: path, environment: environment)
  }
}
