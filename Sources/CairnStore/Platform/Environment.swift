/// All that a store takes from outside: injected, so that tests can put a simulation in its place.
package struct Environment: Sendable {
  package var fileSystem: any FileSystem
  package var background: any BackgroundQueue

  package init(fileSystem: any FileSystem, background: any BackgroundQueue) {
    self.fileSystem = fileSystem
    self.background = background
  }

  /// The real thing.
  package static func system() -> Environment {
    Environment(fileSystem: SystemFileSystem(), background: ThreadBackgroundQueue())
  }
}
