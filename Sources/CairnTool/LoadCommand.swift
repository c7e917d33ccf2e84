import Cairn
import CommandText

/// `load`: stores the entries that `dump` has written.
enum LoadCommand {
  static func run(_ invocation: Invocation, on console: Console) throws {
    let location = try invocation.store(at: 0)
    var lines = LineReader(byteLimit: EntryText.lineByteLimit)
    // Read an entry first: while this process waits for it, others can still use the store.
    var next = try entry(&lines)
    let progress = Progress(on: console)
    let (count, failure) = try location.write(StoreLocation.forMany(createsStore: true)) { store in
      var batch = WriteBatch(store: store)
      var failure: (any Error)?
      do {
        do {
          while let entry = next {
            try batch.add(entry.value, forKey: entry.key, options: entry.options)
            progress.show("loaded", byteCount: lines.byteCount, of: nil)
            next = try self.entry(&lines)
          }
        } catch let malformed as CommandFailure { failure = malformed }
        // The lines before a malformed one count.
        try batch.flush()
      } catch { failure = error }
      return (batch.storedCount, failure)
    }
    console.clearProgress()
    let loaded = "loaded \(DisplayText.count(count, "entry", "entries"))"
    if let failure = failure.map({ CommandFailure($0) }) {
      throw CommandFailure(failure.status, "\(failure.message); \(loaded) before that")
    }
    if invocation.has(.json) {
      try console.print(JSON.object([("loaded", .integer(count))]).text)
    } else {
      try console.tell(loaded)
    }
  }

  private static func entry(_ lines: inout LineReader) throws(CommandFailure) -> EntryText? {
    guard let line = try lines.next() else { return nil }
    do throws(EntryText.Failure) { return try EntryText(reading: line) } catch {
      throw lines.failure(error.reason, column: error.offset.map { $0 + 1 })
    }
  }
}
