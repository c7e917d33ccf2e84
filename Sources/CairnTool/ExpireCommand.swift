import Cairn
import CommandText

/// `expire`: sets when keys expire.
enum ExpireCommand {
  static func run(_ invocation: Invocation, on console: Console) throws {
    let location = try invocation.store(at: 0)
    let keys = try invocation.keys(from: 1)
    guard let lifetime = try invocation.duration(of: .lifetime) else {
      throw invocation.usage("--lifetime is needed; cairn delete removes keys at once")
    }
    var (changed, missing) = (0, 0)
    try location.write(StoreLocation.forMany(createsStore: false)) { store in
      for key in keys {
        do {
          if try setLifetime(lifetime, forKey: key, in: store) {
            changed += 1
          } else {
            missing += 1
            console.report(ValueCommands.notFound(key))
          }
        } catch let failure as CommandFailure {
          console.report(failure)
        } catch let error as StoreError {
          guard case .corrupt = error else { throw error }
          console.report(CommandFailure(error, key: key))
        }
      }
    }
    if invocation.has(.json) {
      try console.print(
        JSON.object([("changed", .integer(changed)), ("missing", .integer(missing))]).text)
    } else {
      let verb = changed == 1 ? "expires" : "expire"
      let time = DisplayText.shortDuration(lifetime)
      try console.tell("\(DisplayText.count(changed, "key")) \(verb) in \(time)")
    }
  }

  /// Makes a key expire this long from now.
  ///
  /// - Returns: whether the key exists.
  private static func setLifetime(
    _ lifetime: Duration, forKey key: [UInt8], in store: Store
  ) throws -> Bool {
    guard let metadata = try store.entry(forKey: key)?.metadata else { return false }
    if metadata.first == CacheMetadata.mark {
      guard let known = try? CacheMetadata(decoding: metadata.rawSpan, wantsRest: true) else {
        throw CommandFailure(
          .failure, "\(DisplayText.line(key)): a later version of Cairn wrote this entry")
      }
      // A new version would undo the removal of a tag that is still being swept.
      if try !known.tags.isEmpty && store.contains(ReservedKey.marks) {
        throw CommandFailure(
          .failure, "\(DisplayText.line(key)): the cache has not finished the removal of a tag")
      }
    }
    return try store.update(forKey: key, lifetime: .after(lifetime)) { $0 } != nil
  }
}
