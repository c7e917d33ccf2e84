/// Which entry is evicted when a limit is exceeded.
public enum EvictionPolicy: Sendable, Hashable, CaseIterable {
  /// The entry that was read or written least recently.
  ///
  /// A read moves its entry to the front. But for a while after a read had to wait for another
  /// thread, reads only mark their entries, and an eviction moves a marked entry to the front
  /// instead of evicting it. So the order is exact while one thread uses the cache, and approximate
  /// while several do.
  case leastRecentlyUsed
  /// SIEVE (Zhang, Yang, Yue, Vigfusson and Rashmi, NSDI 2024): entries stay in insertion order. A
  /// hand moves from the oldest to the newest, and evicts the first entry that has not been used
  /// since the hand last passed it.
  ///
  /// A read only sets a bit, so hits on several threads need no lock. Entries that are used only
  /// once are evicted early, so SIEVE often has more hits than LRU on web and content traffic,
  /// where most keys are read once. It has fewer hits if recent keys are soon read again, as on a
  /// file server. In a loop over more keys than fit, it has no more hits than LRU. Measure your own
  /// workload.
  ///
  /// This implementation adds one rule, because otherwise the hand could follow the newest entries
  /// forever: once the hand has evicted as many entries as the cache holds and has passed hardly
  /// any, it starts again at the oldest entry. So if the keys in use change, the cache may have no
  /// hits until it has had about as many misses as it has entries.
  ///
  /// Finding an entry to evict takes O(1): it passes over at most 256 used entries.
  case sieve
  /// S3-FIFO (Yang, Zhang, Qiu, Yue and Rashmi, SOSP 2023): new entries enter a small queue, whose
  /// size is a tenth of the count limit or the cost limit. At the end of the small queue, an entry
  /// that was used twice moves to the main queue, and any other entry is evicted. At the end of the
  /// main queue, an entry that was used goes back to its start, and any other entry is evicted. A
  /// key that returns soon after its eviction from the small queue enters the main queue directly.
  ///
  /// Choose this policy if many keys are read only once, if the workload includes scans or loops
  /// over more keys than fit, or if you do not know the workload. On 12 public traces, at five
  /// sizes each, its mean hit ratio was 37.1 %, compared with 29.3 % for `leastRecentlyUsed` and
  /// 30.7 % for `sieve`. It was never more than 0.7 points worse than `leastRecentlyUsed`. Choose
  /// `leastRecentlyUsed` if keys return in reverse order, as in a scan back and forth, because
  /// S3-FIFO then has few hits. Choose `sieve` if memory matters: to remember evicted keys, S3-FIFO
  /// takes about 28 bytes per entry that the cache can hold.
  ///
  /// While a cache fills, new entries go to both queues, as in libCacheSim. As a result, in a loop
  /// that is too large for the cache, some keys stay.
  ///
  /// A read changes only bits, so hits need no lock, as with `sieve`. Finding an entry to evict
  /// takes amortised O(1).
  case s3FIFO
}
