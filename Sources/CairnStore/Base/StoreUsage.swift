/// The usage of a store, as far as it is known without a system call.
package struct StoreUsage: Sendable, Hashable {
  package var indexedKeyCount = 0
  package var liveByteCount = 0
  package var deadByteCount = 0
  /// Bytes allocated for the segments' files.
  package var allocatedByteCount = 0
  package var pinnedByteCount = 0
}
