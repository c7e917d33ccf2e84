import Cairn
import CairnLibC
import CommandText

/// Walks a tree and stores its files: key = relative path, value = contents.
///
/// Never follows links, and skips anything that is neither a file nor a directory. Reports an
/// unreadable file and continues with the others. An error of the store ends the walk.
struct Importer {
  /// What a walk found besides the files that it stored.
  struct Counts {
    var files = 0
    var bytes = 0
    var emptyDirectories = 0
    var skippedLinks = 0
    var skippedSpecialFiles = 0
    var errors = 0
  }

  private(set) var counts = Counts()
  private(set) var batch: WriteBatch
  /// The number of keys that already had their value.
  private(set) var unchangedCount = 0
  private let store: Store
  /// The lifetime of the values.
  private let lifetime: Lifetime
  private let progress: Progress
  /// The bytes of all files, if progress is shown.
  private let totalByteCount: Int?

  private let console: Console
  private let configuration: StoreConfiguration
  private let storeIdentity: FileIdentity
  private var keys: ImportKeys
  private var cursor: DirectoryCursor
  /// The path of the cursor's directory, with a trailing slash unless it is the root.
  private var path: [UInt8] = []
  /// For each directory from the root to the cursor's, the subdirectories still to visit, last
  /// first.
  private var pending: [[[UInt8]]] = []

  init(
    store: Store, storeIdentity: FileIdentity, configuration: StoreConfiguration,
    root: Descriptor, decoding: ImportDecoding, lifetime: Duration?, console: Console
  ) {
    self.console = console
    self.configuration = configuration
    self.storeIdentity = storeIdentity
    self.store = store
    self.lifetime = lifetime.map { .after($0) } ?? .unlimited
    batch = WriteBatch(store: store)
    totalByteCount =
      console.showsProgress
      ? TreeSize.byteCount(below: root, except: storeIdentity, on: console) : nil
    progress = Progress(on: console)
    keys = ImportKeys(decoding: decoding, root: root)
    cursor = DirectoryCursor(root: root)
  }

  mutating func run() throws {
    try visitDirectory()
    while SystemCalls.interruption == 0, let last = pending.indices.last {
      if let name = pending[last].popLast() {
        try descend(into: name)
      } else {
        pending.removeLast()
        if !pending.isEmpty { ascend() }
      }
    }
    try batch.flush()
    console.clearProgress()
  }

  private mutating func descend(into name: [UInt8]) throws {
    let below = path + name + [UInt8(ascii: "/")]
    do throws(SystemError) {
      guard below.count <= Importer.pathByteLimit(keyByteLimit: configuration.keyByteLimit) else {
        throw SystemError(call: "open", number: ENAMETOOLONG)
      }
      let identity = try cursor.enter(name)
      if identity == storeIdentity {
        console.note("\(DisplayText.line(path + name)): skipped: the store itself")
        cursor.leave()
        return
      }
    } catch {
      return report(CommandFailure(error, path: path + name))
    }
    path = below
    try visitDirectory()
  }

  /// The maximum length of a directory's path. An encoded path may be longer than any key: it has
  /// three bytes for each byte of the key, and the separators between names.
  private static func pathByteLimit(keyByteLimit: Int) -> Int { 4 * keyByteLimit }

  private mutating func ascend() {
    cursor.leave()
    path.removeLast()
    while let last = path.last, last != UInt8(ascii: "/") { path.removeLast() }
  }

  /// Stores the files of the cursor's directory and remembers its subdirectories.
  private mutating func visitDirectory() throws {
    var subdirectories: [[UInt8]] = []
    do {
      let directory = try cursor.directory()
      var isEmpty = true
      for name in try SystemCalls.names(in: directory) {
        if SystemCalls.interruption != 0 { return }
        switch try kind(of: name, in: directory) {
        case .regular:
          isEmpty = false
          try importFile(name.bytes, in: directory)
        case .directory:
          isEmpty = false
          subdirectories.append(name.bytes)
        case .link: counts.skippedLinks += 1
        case .other: counts.skippedSpecialFiles += 1
        // The name exists, but the kind of its file is unknown.
        case nil: isEmpty = false
        }
      }
      if isEmpty, !path.isEmpty { try importEmptyDirectory() }
    } catch let error as SystemError {
      report(CommandFailure(error, path: path.isEmpty ? [UInt8(ascii: ".")] : path))
    }
    pending.append(subdirectories.reversed())
  }

  private mutating func kind(of name: DirectoryName, in directory: Descriptor) throws -> FileKind? {
    if let kind = name.kind { return kind }
    do throws(SystemError) {
      return try SystemCalls.status(of: name.bytes, in: directory).kind
    } catch {
      report(CommandFailure(error, path: path + name.bytes))
      return nil
    }
  }

  private mutating func importEmptyDirectory() throws {
    if let key = key(forPath: path, valueIsEmpty: true) {
      try add([], forKey: key)
      counts.emptyDirectories += 1
    }
  }

  private mutating func importFile(_ name: [UInt8], in directory: Descriptor) throws {
    let filePath = path + name
    guard let contents = contents(of: name, path: filePath, in: directory),
      let key = key(forPath: filePath, valueIsEmpty: contents.isEmpty)
    else { return }
    try add(contents, forKey: key)
    counts.files += 1
    counts.bytes += contents.count
    // Files that have grown since the total was computed add to it.
    progress.show(
      "imported", byteCount: counts.bytes, of: totalByteCount.map { max($0, counts.bytes) })
  }

  /// Stores the value, unless the store already has it without an end of lifetime and none is
  /// requested. So a second import only completes the first.
  private mutating func add(_ value: [UInt8], forKey key: [UInt8]) throws {
    if try isStored(value, forKey: key) {
      unchangedCount += 1
    } else {
      try batch.add(value, forKey: key, options: .lifetime(lifetime))
    }
  }

  /// Whether the store has exactly this value for the key, without an end of lifetime. A damaged
  /// value counts as missing and is rewritten.
  private func isStored(_ value: [UInt8], forKey key: [UInt8]) throws -> Bool {
    if lifetime != .unlimited { return false }
    do {
      guard let info = try store.info(forKey: key), info.valueByteCount == value.count,
        info.expires == nil, info.idleLimit == nil
      else { return false }
      return try store.withValue(forKey: key) { stored in stored.equals(value) } ?? false
    } catch let error as StoreError {
      guard case .corrupt = error else { throw error }
      return false
    }
  }

  /// The contents of a file, or `nil` if it is no longer a regular file or cannot be read.
  private mutating func contents(
    of name: [UInt8], path: [UInt8], in directory: Descriptor
  ) -> [UInt8]? {
    do throws(SystemError) {
      let file = try SystemCalls.open(name, in: directory, as: .fileForReading)
      let status = try SystemCalls.status(of: file)
      guard status.kind == .regular else {
        counts.skippedSpecialFiles += 1
        return nil
      }
      let limit = configuration.valueByteLimit
      if status.byteCount <= limit,
        let contents = try FileContents.read(file, expecting: status.byteCount, byteLimit: limit)
      {
        return contents
      }
      report(
        CommandFailure(
          .failure,
          "\(DisplayText.line(path)): more than \(DisplayText.count(limit)) bytes, the limit"))
    } catch {
      if error.number == ELOOP {
        // The file became a link after the directory was read.
        counts.skippedLinks += 1
      } else {
        report(CommandFailure(error, path: path))
      }
    }
    return nil
  }

  private mutating func key(forPath path: [UInt8], valueIsEmpty: Bool) -> [UInt8]? {
    do throws(CommandFailure) {
      let key = try keys.key(forPath: path, valueIsEmpty: valueIsEmpty)
      let limit = configuration.keyByteLimit
      guard key.count <= limit else {
        let most = DisplayText.count(limit)
        throw CommandFailure(
          .failure, "\(DisplayText.line(path)): a key of more than \(most) bytes, the limit")
      }
      return key
    } catch {
      report(error)
      return nil
    }
  }

  private mutating func report(_ failure: CommandFailure) {
    counts.errors += 1
    console.report(failure)
  }
}
