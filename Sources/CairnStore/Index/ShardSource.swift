/// The contents of a shard.
package struct ShardContents: Sendable {
  /// In the order of their hashes.
  package var entries: [IndexEntry]
  /// The ends of extended lifetimes, by the location of the put.
  package var extensions: [Location: LifetimeExtension]

  package init(entries: [IndexEntry], extensions: [Location: LifetimeExtension] = [:]) {
    self.entries = entries
    self.extensions = extensions
  }
}

/// The source of the contents of unloaded shards.
package protocol ShardSource: AnyObject, Sendable {
  /// The contents of a shard. Called under the lock of the shard.
  func contents(ofShard shard: Int) throws(StoreError) -> ShardContents
}
