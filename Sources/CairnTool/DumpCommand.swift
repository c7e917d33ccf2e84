import Cairn

/// `dump`: writes every entry as a line of JSON.
enum DumpCommand {
  static func run(_ invocation: Invocation, on console: Console) throws {
    let location = try invocation.store(at: 0)
    let prefix = try invocation.prefix()
    try location.read(on: console) { store in
      let snapshot = try store.snapshot()
      defer { snapshot.close() }
      // A new store cannot tell which entries the removal of a tag hides: versions differ there.
      if try snapshot.contains(ReservedKey.marks) {
        throw CommandFailure(.failure, "the cache has not finished the removal of a tag; try later")
      }
      try snapshot.forEachEntry(prefix: prefix) { entry in
        try console.print(EntryText.object(of: entry, isLive: store.isFollowing).text)
        return .next
      }
    }
  }
}
