/// What a shard is made of.
package struct ShardContents: Sendable {
  /// In the order of their hashes.
  package var entries: [IndexEntry]
  /// The ends of lifetimes that were extended, by the location of the put.
  package var extensions: [Location: LifetimeExtension]

  package init(entries: [IndexEntry], extensions: [Location: LifetimeExtension] = [:]) {
    self.entries = entries
    self.extensions = extensions
  }
}

/// Where the contents of a shard come from that was not needed yet.
package protocol ShardSource: AnyObject, Sendable {
  /// All that a shard holds. Called under the shard's lock.
  func contents(ofShard shard: Int) throws(StoreError) -> ShardContents
}
