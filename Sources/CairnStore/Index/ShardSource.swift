/// The source of the entries of unloaded shards.
package protocol ShardSource: AnyObject, Sendable {
  /// The entries of a shard, in the order of their hashes. Called under the lock of the shard.
  func entries(ofShard shard: Int) throws(StoreError) -> [IndexEntry]
}
