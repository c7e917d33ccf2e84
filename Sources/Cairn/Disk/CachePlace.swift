public import FoundationEssentials

/// Where a cache lies.
///
///     let pages = try DiskCache<String, Page>.open(.name("pages"), configuration: configuration)
///     let other = try DiskCache<String, Page>.open("/var/cache/example", configuration: configuration)
public struct CachePlace: Sendable, Hashable, ExpressibleByStringLiteral {
  enum Kind: Sendable, Hashable {
    case path(String)
    case name(String)
    case shared(String)
    /// Nothing of the file system.
    case elsewhere(String)
  }

  let kind: Kind

  private init(_ kind: Kind) { self.kind = kind }

  /// A path, as `path(_:)`.
  public init(stringLiteral path: String) { self.init(.path(path)) }

  /// A directory. Those that it lies in are made as far as they are missing.
  public static func path(_ path: String) -> CachePlace { CachePlace(.path(path)) }

  /// A directory, as `path(_:)`. A URL that is not one of a file is refused when the cache is opened: `invalidName`.
  public static func url(_ url: URL) -> CachePlace {
    CachePlace(url.isFileURL ? .path(url.path) : .elsewhere(url.absoluteString))
  }

  /// A name among the caches of this program: `$XDG_CACHE_HOME/program/name`, or below `~/.cache` where that variable
  /// is not set to an absolute path. `DiskCacheConfiguration.namespace` takes the place of the program's name, which is
  /// that of its file.
  ///
  /// - Parameter name: of up to 200 bytes, without slashes; not "." nor "..".
  public static func name(_ name: String) -> CachePlace { CachePlace(.name(name)) }

  /// The one cache of a name in this process: the live one, or else one that is opened now.
  ///
  /// The process holds it weakly: keep a reference for as long as it should stay open. The first caller's configuration,
  /// coders and costing count; the log tells of a later caller whose limits differ. After a `close`, the next call opens
  /// it anew.
  ///
  /// - Parameter name: as with `name(_:)`.
  public static func shared(_ name: String) -> CachePlace { CachePlace(.shared(name)) }
}
