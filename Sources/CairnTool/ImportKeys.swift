import Cairn
import CommandText

/// How an import makes keys from paths.
enum ImportDecoding {
  /// Paths are keys. The paths of encoded keys in an exported tree are decoded.
  case exportedTree
  /// `--decode percent`: every path is percent-decoded.
  case percent
  /// `--decode none`: every path is used as the key unchanged.
  case none

  init(_ invocation: Invocation) throws {
    guard let how = invocation.options[.decode] else {
      self = .exportedTree
      return
    }
    switch String(decoding: how, as: UTF8.self) {
    case "percent": self = .percent
    case "none": self = .none
    default:
      throw invocation.usage("--decode must be percent or none, not \(DisplayText.line(how))")
    }
  }
}

/// The keys for the files of a tree.
///
/// Paths differ, but decoded paths may not: `%61` and `a` both give `a`. In an exported tree, the
/// file `.cairn-encoded/a%2F` and an empty directory `a` both give `a/`. The second of two files
/// with the same key is an error, never a silent overwrite.
struct ImportKeys {
  private let decoding: ImportDecoding
  private let root: Descriptor
  /// The keys that two paths may give.
  private var seen: Set<[UInt8]> = []

  init(decoding: ImportDecoding, root: Descriptor) {
    self.decoding = decoding
    self.root = root
  }

  /// The key for a path. The key of an empty directory ends in a slash.
  mutating func key(forPath path: [UInt8], valueIsEmpty: Bool) throws(CommandFailure) -> [UInt8] {
    switch decoding {
    case .none: return path
    case .percent: return try unique(PercentEncoding.decode(path), path: path)
    case .exportedTree:
      guard path.starts(with: TreePath.encodedDirectory + [UInt8(ascii: "/")]) else {
        // The decoded key of a file is never another file's path, but may be an empty directory's.
        guard path.last == UInt8(ascii: "/") else { return path }
        return try unique(path, path: path)
      }
      guard let key = TreePath.key(ofEncodedPath: path),
        !TreePath.isPlain(key, valueIsEmpty: valueIsEmpty) || isDirectory(key)
      else { return try unique(path, path: path) }
      return try unique(key, path: path)
    }
  }

  private mutating func unique(_ key: [UInt8], path: [UInt8]) throws(CommandFailure) -> [UInt8] {
    guard seen.insert(key).inserted else {
      throw CommandFailure(
        .failure, "\(DisplayText.line(path)): another file has the same decoded key")
    }
    return key
  }

  /// Whether the tree has a directory at the path of the key's file. Only then does an export
  /// encode a key that could be a path. Otherwise the path is taken literally.
  private func isDirectory(_ key: [UInt8]) -> Bool {
    var cursor = DirectoryCursor(root: root)
    for name in key.split(separator: UInt8(ascii: "/")) {
      do throws(SystemError) {
        try cursor.enter(Array(name))
      } catch {
        return false
      }
    }
    return true
  }
}
