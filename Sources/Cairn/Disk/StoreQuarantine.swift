internal import CairnStore

/// Moves a corrupt store aside, so that an empty one can take its place.
///
/// The directory exchanges names with an empty one, so the corrupt store is at all times in its
/// place or next to it, with all its files. Nothing is ever removed.
struct StoreQuarantine {
  let path: String
  let fileSystem: any FileSystem
  let configuration: StoreConfiguration

  /// Opens a store. If it is corrupt, moves it aside and opens an empty one.
  ///
  /// - Returns: the store, and the path of the corrupt store if this call moved it.
  /// - Throws: the errors of `open`; `locked` if another process is doing the same; the error that
  ///   says what is corrupt, if the directory cannot be moved.
  func open(
    _ open: () throws(StoreError) -> Store
  ) throws(StoreError) -> (Store, quarantinePath: String?) {
    do throws(StoreError) { return (try open(), nil) } catch {
      guard case .corrupt = error else { throw error }
    }
    // Only one opener may do this.
    guard let directory = try lockedDirectory() else { throw .locked(path: path) }
    defer { withExtendedLifetime(directory) {} }
    // Another one may have done it in the meantime.
    do throws(StoreError) { return (try open(), nil) } catch {
      guard case .corrupt = error else { throw error }
      let newPath = try moveAside(error)
      return (try open(), newPath)
    }
  }

  /// The store's directory, locked until it is released, or `nil` if another opener has locked or
  /// moved it.
  private func lockedDirectory() throws(StoreError) -> Directory? {
    do throws(StoreError) {
      let directory = try Directory(path: path, fileSystem: fileSystem, readOnly: false)
      guard try directory.lock() else { return nil }
      let current = try Directory(path: path, fileSystem: fileSystem, readOnly: false)
      return try directory.identity() == current.identity() ? directory : nil
    } catch {
      if case .noStore = error { return nil }
      throw error
    }
  }

  /// - Returns: the corrupt store's new path.
  private func moveAside(_ damage: StoreError) throws(StoreError) -> String {
    let parent = try Directory(
      readingOnly: Directory.parentPath(of: path), fileSystem: fileSystem)
    let name = Directory.lastName(of: path)
    let names = Set(try parent.names())
    var stamp = configuration.clock.now().millisecondsSinceEpoch
    while names.contains("\(name).quarantine-\(stamp)") { stamp &+= 1 }
    let newName = "\(name).quarantine-\(stamp)"
    let newPath = parent.path + (parent.path.hasSuffix("/") ? "" : "/") + newName
    do throws(StoreError) {
      // A link's target would stay where the program wants a store.
      guard try parent.holdsDirectory(name) else { throw damage }
      guard try Directory.create(path: newPath, fileSystem: fileSystem) else {
        throw .locked(path: newPath)
      }
      // DURABILITY: the exchange is atomic. A crash or a power cut leaves each of the two names
      // with one of the two directories, so the corrupt store is never lost. The new store syncs
      // this directory before it acknowledges anything. Where names cannot be exchanged, a crash
      // after the rename leaves no store in the place, and the next open creates one.
      if try !parent.exchange(name, with: newName) { try parent.rename(name, to: newName) }
    } catch {
      configuration.log(
        .error, .recovery, path: path, "the corrupt store cannot be moved aside: \(error)")
      throw damage
    }
    configuration.log(
      .error, .recovery, path: path,
      "\(damage); the store was moved to \(newPath), and an empty one takes its place; "
        + "cairn salvage copies what is sound")
    return newPath
  }
}
