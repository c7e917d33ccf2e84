/// Which entry is evicted when there is one too many.
public enum EvictionPolicy: Sendable, Hashable, CaseIterable {
  /// The entry whose last read or write was longest ago.
  case leastRecentlyUsed
  /// SIEVE (Zhang, Yang, Yue, Vigfusson and Rashmi, NSDI 2024): entries are in insertion order. A
  /// hand moves from the oldest to the newest and evicts the first entry that was not used since
  /// the hand last passed it.
  ///
  /// A read sets one bit and moves nothing, so the reads of several threads need no lock as long as
  /// nothing changes. Entries used once go early, so SIEVE often has more
  /// hits than LRU on web and content traffic, where most keys are read once. It has fewer hits if
  /// recent keys are read again soon, as on a file server, and no more on a loop over more keys
  /// than fit. Measure your own load.
  ///
  /// One addition keeps the hand from following the newest entries for ever, without a hit: it
  /// starts over at the oldest once it has evicted as many entries as there are and passed hardly
  /// any. So when the keys in use change, the cache may have no hits for about as many misses as it
  /// has entries.
  ///
  /// Finding an entry to evict takes amortised O(1).
  case sieve
  /// S3-FIFO (Yang, Zhang, Qiu, Yue and Rashmi, SOSP 2023): new entries enter a small queue, which
  /// has a tenth of the count limit or of the cost limit. At its end, an entry that was used twice
  /// moves to the main queue; any other is evicted. At the end of the main queue, an entry that was
  /// used since goes back to the beginning. A key that returns soon after its eviction from the
  /// small queue enters the main queue at once.
  ///
  /// Choose it if many keys are read once, if the load includes scans or loops over more keys than
  /// fit, or if you do not know the load. On 12 public traces of programs, at five sizes each, it
  /// had 37.1 % hits; `leastRecentlyUsed` had 29.3 % and `sieve` 30.7 %. In none of them did it
  /// lose more than 0.7 points to `leastRecentlyUsed`. Choose `leastRecentlyUsed` if keys return in
  /// reverse order, as in a scan to and fro: there S3-FIFO has few hits. Choose `sieve` if memory
  /// matters: to remember what it evicted, S3-FIFO takes 12 bytes for each place that the cache has
  /// for entries.
  ///
  /// While a cache fills, new entries go to both queues, as in libCacheSim. As a result, part of a
  /// loop that is too large for the cache stays in it.
  ///
  /// A read sets two bits and moves nothing: reads need no lock, as with `sieve`. Finding an entry to evict takes amortised O(1).
  case s3FIFO
}
