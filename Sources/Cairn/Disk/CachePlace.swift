public import CairnEssentials

/// Where a cache is stored.
///
///     let pages = try DiskCache<String, Page>.open(.name("pages"), configuration: configuration)
///     let other = try DiskCache<String, Page>.open(
///       .path("/var/cache/example"), configuration: configuration)
public struct CachePlace: Sendable, Hashable {
  enum Kind: Sendable, Hashable {
    case path(String)
    case name(String)
    case shared(String)
    /// Not in the file system.
    case elsewhere(String)
  }

  let kind: Kind

  private init(_ kind: Kind) { self.kind = kind }

  /// A directory. Opening the cache creates missing parent directories.
  public static func path(_ path: String) -> CachePlace { CachePlace(.path(path)) }

  /// A directory, like `path(_:)`. Opening the cache throws `invalidConfiguration` if the URL is
  /// not a file URL.
  public static func url(_ url: URL) -> CachePlace {
    CachePlace(url.isFileURL ? .path(url.path) : .elsewhere(url.absoluteString))
  }

  /// One of this program's caches, by name: the directory `$XDG_CACHE_HOME/program/name`, or
  /// `~/.cache/program/name` if that variable is not set to an absolute path. `program` is the
  /// program's file name, unless `DiskCacheConfiguration.namespace` replaces it.
  ///
  /// - Parameter name: up to 200 bytes, without slashes, and not "." or "..".
  public static func name(_ name: String) -> CachePlace { CachePlace(.name(name)) }

  /// The cache with this name that the whole process shares. Opening this place returns the open
  /// cache, or opens the cache if it is not open yet.
  ///
  /// The library holds the cache weakly, so keep a reference for as long as the cache should stay
  /// open. The configuration, coders and costing of the first caller apply, and the log reports
  /// later callers with other limits. After a `close`, the next call opens the cache again.
  ///
  /// - Parameter name: see `name(_:)`.
  public static func shared(_ name: String) -> CachePlace { CachePlace(.shared(name)) }
}
