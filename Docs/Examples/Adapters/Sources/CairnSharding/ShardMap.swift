/// Maps keys to shards, and shards to places. The result is the same in every process and every
/// run.
///
///     let map = ShardMap(places: ["/disk1", "/disk2", "/disk3"])
///     let shard = map.shard(forKey: "user/17")  // from 0 to 255; never changes
///     let place = map.place(ofShard: shard)     // one of the three
///
/// The number of shards never changes, so a key keeps its shard. Places may be added and removed.
/// The map uses rendezvous hashing (Thaler and Ravishankar, 1998): a new place takes shards from
/// all others, a removed place leaves its shards to all others, and no other shard moves. A place
/// is a directory, or the name of a machine or process.
public struct ShardMap: Sendable, Hashable {
  /// The places, in any order.
  public var places: [String]
  /// The number of shards. Never change it once there is data.
  public let shardCount: Int

  /// Creates a map with at least one place and one shard.
  public init(places: [String], shardCount: Int = 256) {
    precondition(!places.isEmpty && shardCount > 0, "a map needs a place and a shard")
    self.places = places
    self.shardCount = shardCount
  }

  /// The shard of a key. Does not use `hashValue`, which differs between processes.
  public func shard(forKey key: String) -> Int {
    Int(Self.hash(key) % UInt64(shardCount))
  }

  /// The place where a shard should be: the one with the highest weight for the shard.
  public func place(ofShard shard: Int) -> String {
    func weight(_ place: String) -> UInt64 { Self.hash("\(shard) \(place)") }
    // If weights are equal, which is very rare, the greater name wins, whatever the order of
    // places.
    let best = places.max { (weight($0), $0) < (weight($1), $1) }
    return best ?? places[0]
  }

  /// FNV-1a, followed by the final mix of MurmurHash3. If names differ in one digit, each bit of
  /// their hashes may differ.
  static func hash(_ text: String) -> UInt64 {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in text.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    hash = (hash ^ hash >> 33) &* 0xff51_afd7_ed55_8ccd
    hash = (hash ^ hash >> 33) &* 0xc4ce_b9fe_1a85_ec53
    return hash ^ hash >> 33
  }
}
