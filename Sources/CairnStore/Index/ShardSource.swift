/// Where the entries of a shard come from that was not needed yet.
package protocol ShardSource: AnyObject, Sendable {
  /// All entries of a shard, in the order of their hashes. Called under the shard's lock.
  func entries(ofShard shard: Int) throws(StoreError) -> [IndexEntry]
}
