import CairnLibC

/// A position in a directory tree. The walk moves one step down or up at a time.
///
/// Every step is relative to an open directory and follows no link. So a path may be longer than
/// the system's `PATH_MAX`, and no link placed on the way can divert the walk. Only the deepest
/// directories are kept open, because a tree may have more levels than a process may have
/// descriptors. If a closed directory is needed again, it is reopened from the root, and must be
/// the same directory as before.
struct DirectoryCursor {
  private struct Level {
    let name: [UInt8]
    let identity: FileIdentity
    var descriptor: Descriptor?
  }

  let root: Descriptor
  private var levels: [Level] = []
  private let openLimit: Int

  /// Starts at an open directory.
  init(root: Descriptor, openLimit: Int? = nil) {
    self.root = root
    self.openLimit = openLimit ?? max(2, min(64, SystemCalls.descriptorLimit() / 8))
  }

  /// The depth of the position below the root.
  var depth: Int { levels.count }

  /// The name of the directory `depth` steps below the root, from 1.
  func name(atDepth depth: Int) -> [UInt8] { levels[depth - 1].name }

  /// The directory at the position.
  mutating func directory() throws(SystemError) -> Descriptor {
    guard let last = levels.last else { return root }
    if let descriptor = last.descriptor { return descriptor }
    var descriptor = root
    for index in levels.indices {
      descriptor = try SystemCalls.open(levels[index].name, in: descriptor, as: .directory)
      guard try SystemCalls.status(of: descriptor).identity == levels[index].identity else {
        throw SystemError(call: "open", number: ESTALE)
      }
      if index >= levels.count - openLimit { levels[index].descriptor = descriptor }
    }
    return descriptor
  }

  /// Enters a directory and returns its identity.
  @discardableResult
  mutating func enter(_ name: [UInt8]) throws(SystemError) -> FileIdentity {
    let descriptor = try SystemCalls.open(name, in: directory(), as: .directory)
    let identity = try SystemCalls.status(of: descriptor).identity
    levels.append(Level(name: name, identity: identity, descriptor: descriptor))
    let closing = levels.count - 1 - openLimit
    if closing >= 0 { levels[closing].descriptor = nil }
    return identity
  }

  /// Returns to the parent.
  mutating func leave() { levels.removeLast() }

  /// Moves to the directory with these names below the root, by way of the nearest common ancestor.
  ///
  /// - Parameter creating: whether to create missing directories.
  mutating func move(
    to path: ArraySlice<ArraySlice<UInt8>>, creating: Bool = true
  ) throws(SystemError) {
    var shared = 0
    for (level, name) in zip(levels, path) {
      guard name.elementsEqual(level.name) else { break }
      shared += 1
    }
    levels.removeLast(levels.count - shared)
    for component in path.dropFirst(shared) {
      let name = [UInt8](component)
      if creating {
        do throws(SystemError) {
          try SystemCalls.makeDirectory(name, in: directory())
        } catch {
          guard error.number == EEXIST else { throw error }
        }
      }
      try enter(name)
    }
  }
}
