import Cairn
import CairnLibC
import CommandText

/// Writes the values of a store as files of a new tree.
///
/// Creates every file and enters every directory without following links, so nothing outside the
/// tree is ever written. Reports a damaged value and continues with the others.
struct Exporter {
  struct Counts {
    var files = 0
    var bytes = 0
    var emptyDirectories = 0
    var encodedKeys = 0
    var errors = 0
  }

  private(set) var counts = Counts()
  private let progress: Progress

  private let store: Store
  private let console: Console
  private var cursor: DirectoryCursor
  /// A second position, for finding out which directories exist.
  private var finder: DirectoryCursor

  init(store: Store, root: Descriptor, console: Console) {
    self.store = store
    self.console = console
    progress = Progress(on: console)
    cursor = DirectoryCursor(root: root)
    finder = DirectoryCursor(root: root)
  }

  mutating func run() throws {
    var unreadable: Set<[UInt8]> = []
    var damage: StoreError?
    let keys = try store.sortedKeys(passingOver: &damage)
    if let damage { report(CommandFailure(damage)) }
    let plan = try ExportPlan(keys: keys) { key in
      do throws(StoreError) {
        return try store.info(forKey: key)?.valueByteCount == 0
      } catch {
        guard case .corrupt = error else { throw error }
        report(CommandFailure(error, key: key))
        unreadable.insert(key)
        return false
      }
    }
    let total = try console.showsProgress ? byteCount(of: keys) : nil
    for key in plan.plain where SystemCalls.interruption == 0 {
      try exportPlain(key)
      show(of: total)
    }
    for key in plan.obstructing.reversed() where SystemCalls.interruption == 0 {
      if isDirectory(key) { try exportEncoded(key) } else { try exportPlain(key) }
      show(of: total)
    }
    for key in plan.encoded where !unreadable.contains(key) && SystemCalls.interruption == 0 {
      try exportEncoded(key)
      show(of: total)
    }
    console.clearProgress()
  }

  private mutating func exportPlain(_ key: [UInt8]) throws {
    let names = key.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    try export(key, to: names[...])
  }

  private mutating func exportEncoded(_ key: [UInt8]) throws {
    let names = TreePath.encodedNames(of: key).map { $0[...] }
    if try export(key, to: names[...]) { counts.encodedKeys += 1 }
  }

  /// Whether the tree has a directory at the path of the key's file.
  private mutating func isDirectory(_ key: [UInt8]) -> Bool {
    let names = key.split(separator: UInt8(ascii: "/"))
    do throws(SystemError) {
      try finder.move(to: names[...], creating: false)
      return true
    } catch {
      // If it exists but cannot be opened, the export of the key fails and reports that.
      return false
    }
  }

  private func show(of total: Int?) {
    progress.show("exported", byteCount: counts.bytes, of: total)
  }

  /// The total bytes of the values, as far as the heads of their records can be read.
  private func byteCount(of keys: [[UInt8]]) throws -> Int {
    var byteCount = 0
    for key in keys where SystemCalls.interruption == 0 {
      do throws(StoreError) {
        byteCount += try store.info(forKey: key)?.valueByteCount ?? 0
      } catch {
        // Exporting the value reports the damage.
        guard case .corrupt = error else { throw error }
      }
    }
    return byteCount
  }

  /// Writes one value. Returns whether the value was written. The last name is empty for an empty
  /// directory.
  @discardableResult
  private mutating func export(
    _ key: [UInt8], to path: ArraySlice<ArraySlice<UInt8>>
  ) throws -> Bool {
    do {
      let written: Bool? = try store.withValue(forKey: key) { value in
        try cursor.move(to: path.dropLast())
        guard let name = path.last, !name.isEmpty else {
          counts.emptyDirectories += 1
          return true
        }
        try write(value, to: Array(name), in: cursor.directory())
        counts.files += 1
        counts.bytes += value.byteCount
        return true
      }
      // If there is no value, the key has expired since the keys were listed.
      return written ?? false
    } catch let error as StoreError {
      guard case .corrupt = error else { throw error }
      report(CommandFailure(error, key: key))
    } catch let error as SystemError {
      let failure = CommandFailure(error, path: key)
      // These errors would affect every other file too.
      if [ENOSPC, EDQUOT, EROFS, EIO].contains(error.number) { throw failure }
      report(failure)
    }
    return false
  }

  private func write(
    _ value: RawSpan, to name: [UInt8], in directory: Descriptor
  ) throws(SystemError) {
    let file = try SystemCalls.open(name, in: directory, as: .newFile)
    do throws(SystemError) {
      try SystemCalls.write(value, to: file)
      try SystemCalls.close(file)
    } catch {
      // A partial value would look complete.
      try? SystemCalls.removeFile(name, in: directory)
      throw error
    }
  }

  private mutating func report(_ failure: CommandFailure) {
    counts.errors += 1
    console.report(failure)
  }
}
