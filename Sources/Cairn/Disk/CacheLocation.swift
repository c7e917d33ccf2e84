internal import FoundationEssentials

/// Where a cache lies that is known by its name.
package enum CacheLocation {
  /// The longest name, in bytes of UTF-8: what a store beside it is set aside as has a longer one, and a
  /// file's name has 255 at most.
  package static let nameByteLimit = 200

  /// The environment of the process.
  package static var variables: [String: String] { ProcessInfo.processInfo.environment }

  /// The directory of a name: `$XDG_CACHE_HOME/namespace/name`, or below `~/.cache` where that variable
  /// is not set or no absolute path, as the XDG Base Directory Specification has it.
  ///
  /// - Parameter variables: of the environment.
  /// - Throws: `invalidName`, `noCacheDirectory`.
  package static func path(
    name: String, namespace: String?,
    variables: [String: String] = CacheLocation.variables
  ) throws(CacheError) -> String {
    try check(name)
    guard let namespace else { return try base(variables) + "/" + name }
    try check(namespace)
    return try base(variables) + "/" + namespace + "/" + name
  }

  /// Throws where a name could lead elsewhere or is no name of a file.
  package static func check(_ name: String) throws(CacheError) {
    func require(_ holds: Bool, _ reason: String) throws(CacheError) {
      if !holds { throw .invalidName(reason: reason) }
    }
    try require(!name.isEmpty, "it is empty")
    try require(name != "." && name != "..", "\(name) is a directory that every directory has")
    // By bytes, since "/" followed by a combining mark is another character.
    try require(!name.utf8.contains(UInt8(ascii: "/")), "it has a slash")
    try require(!name.utf8.contains(0), "it has a byte 0")
    try require(
      name.utf8.count <= nameByteLimit,
      "it has \(name.utf8.count) bytes, more than \(nameByteLimit)")
  }

  private static func base(_ variables: [String: String]) throws(CacheError) -> String {
    if let path = variables["XDG_CACHE_HOME"],
      isAbsolute(path) || plantedInCache(.relativeCacheHome)
    {
      return withoutSlashes(path)
    }
    if let home = variables["HOME"], isAbsolute(home) { return withoutSlashes(home) + "/.cache" }
    let home = FileManager.default.homeDirectoryForCurrentUser.path
    guard isAbsolute(home) else {
      throw .noCacheDirectory(reason: "neither XDG_CACHE_HOME nor HOME is an absolute path")
    }
    return withoutSlashes(home) + "/.cache"
  }

  private static func isAbsolute(_ path: String) -> Bool { path.utf8.first == UInt8(ascii: "/") }

  private static func withoutSlashes(_ path: String) -> String {
    String(
      decoding: path.utf8.reversed().drop { $0 == UInt8(ascii: "/") }.reversed(), as: UTF8.self)
  }
}
