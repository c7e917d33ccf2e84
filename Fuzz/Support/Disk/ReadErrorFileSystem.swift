package import CairnStore
import Synchronization

/// A file system that fails one read of a segment.
package final class ReadErrorFileSystem: FileSystemDecorator {
  package let base: any FileSystem
  private let isArmed = Atomic(false)

  package init(_ base: any FileSystem) { self.base = base }

  /// Fails the next read.
  package func arm() { isArmed.store(true, ordering: .relaxed) }

  /// Whether the read to fail is still to come.
  package var isPending: Bool { isArmed.load(ordering: .relaxed) }

  package func read(
    _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, at offset: Int
  ) throws(SystemError) -> Int {
    if isArmed.exchange(false, ordering: .relaxed) {
      throw SystemError(call: "pread", errorNumber: SystemError.inputOutput)
    }
    return try unsafe base.read(descriptor, into: buffer, at: offset)
  }
}
