package import CairnStore

/// A file system whose syncs take longer.
package final class DelayedSyncFileSystem: FileSystemDecorator {
  package let base: any FileSystem
  private let delay: Duration

  package init(_ base: any FileSystem, delay: Duration) {
    self.base = base
    self.delay = delay
  }

  package func synchronize(_ descriptor: Int32) throws(SystemError) {
    pause(for: delay)
    try base.synchronize(descriptor)
  }

  package func synchronizeData(_ descriptor: Int32) throws(SystemError) {
    pause(for: delay)
    try base.synchronizeData(descriptor)
  }
}
