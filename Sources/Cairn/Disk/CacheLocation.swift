internal import CairnEssentials
internal import CairnStore

/// The directory of a named cache.
package enum CacheLocation {
  /// The longest name, in bytes of UTF-8. A quarantined store next to the cache has a longer name,
  /// and a file name may have at most 255 bytes.
  package static let nameByteLimit = 200

  /// The process's environment.
  package static var variables: [String: String] { ProcessInfo.processInfo.environment }

  /// The file name of this program, however it was invoked, or "cairn" if a cache cannot have that
  /// name.
  package static let programName: String = {
    let file = (programPath() ?? CommandLine.arguments.first ?? "").split(separator: "/").last ?? ""
    do throws(StoreError) { try check(String(file)) } catch { return "cairn" }
    return String(file)
  }()

  /// The directory of a named cache: `$XDG_CACHE_HOME/namespace/name`, or below `~/.cache` if that
  /// variable is not set to an absolute path, as the XDG Base Directory Specification defines.
  ///
  /// - Parameter variables: the environment.
  /// - Throws: `invalidConfiguration` or `unusable`, before creating anything.
  package static func path(
    name: String, namespace: String?,
    variables: [String: String] = CacheLocation.variables
  ) throws(StoreError) -> String {
    try check(name)
    // An empty namespace means none.
    let namespace = namespace == "" ? nil : namespace
    if let namespace { try check(namespace) }
    let path = try base(variables) + (namespace.map { "/" + $0 } ?? "") + "/" + name
    if let place = store(around: path, SystemFileSystem()) {
      throw .inside(place, path)
    }
    return path
  }

  /// The store whose directory contains `path` at any depth, or `nil`. `path` need not exist. Such
  /// a store can exist because a namespace may be the name of a cache.
  static func store(around path: String, _ fileSystem: any FileSystem) -> String? {
    var place = Directory.parentPath(of: path)
    var isThere = false
    var identity: FileIdentity?
    // No path is longer than 4,096 bytes.
    for _ in 0..<2048 {
      // A user who may not read a directory cannot create anything below it.
      guard let directory = try? Directory(readingOnly: place, fileSystem: fileSystem) else {
        let above = Directory.parentPath(of: place)
        if isThere || above == place { return nil }
        place = above
        continue
      }
      let found = (try? directory.identity()) ?? nil
      // The root is its own parent.
      if isThere, found == identity { return nil }
      if has(FileName.lock, directory) && has(FileName.manifest, directory) { return place }
      (isThere, identity) = (true, found)
      place += place.hasSuffix("/") ? ".." : "/.."
    }
    return nil
  }

  private static func has(_ name: String, _ directory: Directory) -> Bool {
    do throws(StoreError) { return try directory.openFile(name, mode: .readOnly) != nil } catch {
      // The file exists, but has the wrong kind or owner.
      if case .unsafeFile = error { return true }
      return false
    }
  }

  /// Throws if a name could lead to another directory or is not a valid file name.
  package static func check(_ name: String) throws(StoreError) {
    func require(_ holds: Bool, _ reason: String) throws(StoreError) {
      if !holds { throw .invalidConfiguration(option: "name", reason: reason) }
    }
    try require(!name.isEmpty, "it is empty")
    try require(
      name.utf8.count <= nameByteLimit,
      "it has \(name.utf8.count) bytes, more than \(nameByteLimit)")
    try require(name != "." && name != "..", "every directory has an entry of that name")
    // Compares bytes, because "/" followed by a combining mark is another character.
    try require(!name.utf8.contains(UInt8(ascii: "/")), "\(quoted(name)) has a slash")
    try require(!name.utf8.contains(0), "\(quoted(name)) has a zero byte")
  }

  /// A name, quoted for a log.
  private static func quoted(_ name: String) -> String { name.debugDescription }

  private static func base(_ variables: [String: String]) throws(StoreError) -> String {
    if let path = variables["XDG_CACHE_HOME"], isAbsolute(path) {
      return withoutSlashes(path)
    }
    if let home = variables["HOME"], isAbsolute(home) { return withoutSlashes(home) + "/.cache" }
    let home = FileManager.default.homeDirectoryForCurrentUser.path
    guard isAbsolute(home) else {
      throw .unusable(
        path: home, reason: "neither XDG_CACHE_HOME nor HOME is an absolute path")
    }
    return withoutSlashes(home) + "/.cache"
  }

  private static func isAbsolute(_ path: String) -> Bool { path.utf8.first == UInt8(ascii: "/") }

  private static func withoutSlashes(_ path: String) -> String {
    String(
      decoding: path.utf8.reversed().drop { $0 == UInt8(ascii: "/") }.reversed(), as: UTF8.self)
  }
}

extension StoreError {
  static func inside(_ store: String, _ path: String) -> StoreError {
    .unusable(path: path, reason: "it is inside the directory of a store, \(shown(store))")
  }

  static func notAFile(_ url: String) -> StoreError {
    .invalidConfiguration(option: "name", reason: "\(url) is not a file URL")
  }
}
