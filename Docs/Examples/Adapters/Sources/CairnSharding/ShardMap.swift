/// Which shard has a key, and which place should have a shard: the same in every process and every run.
///
///     let map = ShardMap(places: ["/disk1", "/disk2", "/disk3"])
///     let shard = map.shard(forKey: "user/17")  // from 0 to 255, for ever
///     let place = map.place(ofShard: shard)     // one of the three
///
/// The number of shards never changes, so a key keeps its shard. Places come and go: by rendezvous hashing
/// (Thaler and Ravishankar 1998), a new place takes shards from all others and nothing else moves; a place
/// that goes gives its shards to all others. A place is a directory, or the name of a machine or process.
public struct ShardMap: Sendable, Hashable {
  /// The places, in any order.
  public var places: [String]
  /// How many shards there are. Never change it once there is data.
  public let shardCount: Int

  /// Makes a map. There must be at least one place and one shard.
  public init(places: [String], shardCount: Int = 256) {
    precondition(!places.isEmpty && shardCount > 0, "a map needs a place and a shard")
    self.places = places
    self.shardCount = shardCount
  }

  /// The shard of a key. `hashValue` would be another one in each process.
  public func shard(forKey key: String) -> Int {
    Int(Self.hash(key) % UInt64(shardCount))
  }

  /// Where a shard should be: at the place that has the highest number for it.
  public func place(ofShard shard: Int) -> String {
    func weight(_ place: String) -> UInt64 { Self.hash("\(shard) \(place)") }
    // Of equal numbers, which hardly occur, the greater name decides, whatever the order.
    let best = places.max { (weight($0), $0) < (weight($1), $1) }
    return best ?? places[0]
  }

  /// FNV-1a, mixed by the last steps of MurmurHash3: names that differ by one digit differ in all bits.
  static func hash(_ text: String) -> UInt64 {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in text.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    hash = (hash ^ hash >> 33) &* 0xff51_afd7_ed55_8ccd
    hash = (hash ^ hash >> 33) &* 0xc4ce_b9fe_1a85_ec53
    return hash ^ hash >> 33
  }
}
