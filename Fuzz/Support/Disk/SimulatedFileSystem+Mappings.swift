package import CairnStore
import Foundation

/// Mappings, and the writes into them.
extension SimulatedFileSystem: MappedWriteObserver {
  package func map(
    _ descriptor: Int32, byteCount: Int, writable: Bool
  ) throws(SystemError) -> UnsafeMutableRawPointer {
    try unsafe calling(.map, descriptor) { (_) throws(SystemError) in
      let file = try file(descriptor, .map)
      let address = unsafe file.memory(capacity: max(byteCount, disk.leastMappedByteCount))
      file.mappingCount += 1
      // A file may be mapped more than once; here, all its mappings have the same address.
      mappings[UInt(bitPattern: address), default: (file, 0)].count += 1
      return unsafe address
    }
  }

  package func unmap(_ address: UnsafeMutableRawPointer, byteCount: Int) {
    note(.mapping(UInt(bitPattern: address)))
  }

  func removeMapping(_ key: UInt) {
    guard let (file, count) = mappings[key] else { return }
    file.mappingCount -= 1
    mappings[key] = count == 1 ? nil : (file, count - 1)
  }

  package func protect(_ address: UnsafeMutableRawPointer, byteCount: Int) throws(SystemError) {
    try calling(.protect) { (_) throws(SystemError) in
    }
  }

  package func prefault(_ address: UnsafeMutableRawPointer, byteCount: Int) {}
  package func unmapPages(_ address: UnsafeMutableRawPointer, byteCount: Int) {}

  package var mappedWriteObserver: (any MappedWriteObserver)? { self }

  package func didWrite(mapping: UInt, offset: Int, byteCount: Int) {
    disk.calls.lock()
    defer { disk.calls.unlock() }
    guard let file = mappings[mapping]?.file ?? formerMappings[mapping] else {
      preconditionFailure("a write outside all mappings")
    }
    precondition(
      offset + byteCount <= file.byteCount,
      "SIGBUS: a write into a mapping beyond the end of the file")
    precondition(
      file.sharedPages(at: offset, count: byteCount).isEmpty
        && offset + byteCount <= file.allocatedByteCount,
      "SIGBUS if the disk is full: a write into a mapping where the file has no block of its own")
    if isDead {
      file.amend(at: offset, count: byteCount) { old, _ in old }
      return
    }
    callCount += 1
    var intervention: Intervention?
    // The words of the page FOLLOW are stored one by one, so each of them exists or not.
    if showsPartialWrites, byteCount > 8 {
      file.showSomeWords(at: offset, count: byteCount) {
        random.once(in: 2)
      } while: {
        intervention = interruption(of: .mappedWrite)
      }
    } else {
      intervention = interruption(of: .mappedWrite)
    }
    if case .die = intervention {
      // Other processes have already seen the word of the page.
      let isSeen = showsPartialWrites && byteCount == 8
      if !isSeen {
        file.amend(at: offset, count: byteCount) { old, new in
          random.once(in: 2) ? old : new
        }
      }
      file.noteWrite(at: offset, count: byteCount)
      kill()
      return
    }
    file.noteWrite(at: offset, count: byteCount)
  }
}
