extension Directory {
  /// Creates missing parents of `path`, mode 0700. Their names are durable when the call returns.
  package static func createParents(
    of path: String, fileSystem: any FileSystem
  ) throws(StoreError) {
    let parent = parentPath(of: path)
    var isMade: Bool
    do throws(StoreError) { isMade = try create(path: parent, fileSystem: fileSystem) } catch {
      guard case .system(let failure) = error, failure.errorNumber == SystemError.noEntry,
        parentPath(of: parent) != parent
      else { throw error }
      try createParents(of: parent, fileSystem: fileSystem)
      isMade = try create(path: parent, fileSystem: fileSystem)
    }
    if isMade { try synchronizeParent(of: parent, fileSystem: fileSystem) }
  }

  /// Creates the directory at `path`, mode 0700, if it does not exist.
  ///
  /// - Returns: whether it was created.
  @discardableResult
  package static func create(
    path: String, fileSystem: any FileSystem
  ) throws(StoreError) -> Bool {
    if let flaw = flaw(of: path) { throw .unusable(path: path, reason: flaw) }
    do {
      try fileSystem.makeDirectory(path: path)
      return true
    } catch
      where error.errorNumber == SystemError.exists
    {
      return false
    } catch  where error.errorNumber == SystemError.noEntry {
      var failure = error.failure(path: path)
      failure.advice = .parentMustExist
      throw .system(failure)
    } catch {
      throw error.storeError(path: path)
    }
  }

  /// Makes the name of the directory at `path` durable. Does nothing if this process may not read
  /// the parent, or if the parent cannot be synced, as under a mount point.
  package static func synchronizeParent(
    of path: String, fileSystem: any FileSystem
  ) throws(StoreError) {
    let parent = path.hasSuffix("/") ? path + ".." : path + "/.."
    do {
      let descriptor = try fileSystem.openDirectory(path: parent)
      defer { fileSystem.close(descriptor) }
      try fileSystem.synchronize(descriptor)
    } catch
      where [SystemError.accessDenied, SystemError.invalidArgument, SystemError.readOnlyFileSystem]
      .contains(error.errorNumber)
    {
    } catch {
      throw error.storeError(path: parent)
    }
  }
}
