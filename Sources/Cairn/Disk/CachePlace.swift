public import FoundationEssentials

/// The location of a cache.
///
///     let pages = try DiskCache<String, Page>.open(.name("pages"), configuration: configuration)
///     let other = try DiskCache<String, Page>.open("/var/cache/example", configuration: configuration)
public struct CachePlace: Sendable, Hashable, ExpressibleByStringLiteral {
  enum Kind: Sendable, Hashable {
    case path(String)
    case name(String)
    case shared(String)
    /// Not in the file system.
    case elsewhere(String)
  }

  let kind: Kind

  private init(_ kind: Kind) { self.kind = kind }

  /// A path; see `path(_:)`.
  public init(stringLiteral path: String) { self.init(.path(path)) }

  /// A directory. Opening creates missing parents.
  public static func path(_ path: String) -> CachePlace { CachePlace(.path(path)) }

  /// A directory, like `path(_:)`. Opening throws `invalidName` if the URL is not a file URL.
  public static func url(_ url: URL) -> CachePlace {
    CachePlace(url.isFileURL ? .path(url.path) : .elsewhere(url.absoluteString))
  }

  /// A name among the caches of this program: `$XDG_CACHE_HOME/program/name`, or below `~/.cache`
  /// if that variable is not set to an absolute path. `program` is the program's file name, unless
  /// `DiskCacheConfiguration.namespace` replaces it.
  ///
  /// - Parameter name: up to 200 bytes, without slashes, and not "." or "..".
  public static func name(_ name: String) -> CachePlace { CachePlace(.name(name)) }

  /// The process's shared cache of this name. Opens the cache if it is not open yet.
  ///
  /// The process holds the cache weakly, so keep a reference for as long as it should stay open.
  /// The first caller's configuration, coders and costing apply. The log reports later callers with
  /// different limits. After a `close`, the next call opens the cache again.
  ///
  /// - Parameter name: see `name(_:)`.
  public static func shared(_ name: String) -> CachePlace { CachePlace(.shared(name)) }
}
