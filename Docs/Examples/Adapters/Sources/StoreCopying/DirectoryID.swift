import Foundation

/// Identifies a directory, however its path is spelled.
package struct DirectoryID: Hashable {
  private let device: UInt64
  private let inode: UInt64

  /// Follows links. `nil` if nothing is at the path.
  package init?(_ path: String) {
    var info = stat()
    guard stat(path, &info) == 0 else { return nil }
    device = UInt64(info.st_dev)
    inode = UInt64(info.st_ino)
  }

  /// Whether two paths lead to the same directory.
  package static func isSame(_ left: String, _ right: String) -> Bool {
    if left == right { return true }
    guard let id = DirectoryID(left) else { return false }
    return id == DirectoryID(right)
  }

  /// Whether two paths are the same directory, or one is inside the other. Then removing one would
  /// remove both.
  package static func overlaps(_ left: String, _ right: String) -> Bool {
    func isInside(_ left: String, _ right: String) -> Bool {
      DirectoryID(right).map { chain(of: left).contains($0) } ?? false
    }
    return isInside(left, right) || isInside(right, left)
  }

  /// The path itself, if something is there, and all existing directories above it.
  private static func chain(of path: String) -> [DirectoryID] {
    var path = path
    while DirectoryID(path) == nil {
      let parent = (path as NSString).deletingLastPathComponent
      path = parent.isEmpty ? "." : parent
    }
    var chain: [DirectoryID] = []
    // The root contains itself.
    while let id = DirectoryID(path), id != chain.last {
      chain.append(id)
      path += "/.."
    }
    return chain
  }
}
