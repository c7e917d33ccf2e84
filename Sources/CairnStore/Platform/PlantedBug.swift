#if CAIRN_PLANTED_BUGS
  internal import Glibc
#endif

/// Mistakes that can be switched on to see whether the tests notice: each is one that somebody
/// could make in that very place.
///
/// They exist only in a build with `-DCAIRN_PLANTED_BUGS`, in which the environment variable
/// `CAIRN_PLANTED_BUG` names the one that is on. In any other build `planted` is `false` to the
/// compiler, and nothing of them is left.
package enum PlantedBug: String, CaseIterable, Sendable {
  // Syncs left out.
  case noDataSync, noManifestSync, noDirectorySync, noSegmentHeaderSync, noSegmentNameSync
  case noParentSync, noSyncAtRecovery, noRewriteAtRecovery, noSyncAtClose, noSyncBeforeSealing
  /// Only the last segment is synced where the log has gone on in another.
  case onlyActiveSegmentSynced
  /// A sync that failed is tried again, which reports success.
  case failedSyncRetried

  // Orders turned round.
  case manifestWrittenInPlace, segmentsUnlinkedFirst, appendBeforeUnclean, syncMarkBeforeSync
  /// What was found is synced only when the manifest already says that it is there.
  case recoverySyncAfterSwitch
  /// A recovery goes on as if the manifest that it read were on disk for good.
  case noSettleAtOpen
  case syncedInReverse, markClearedFirst

  // Checks left out.
  case headerChecksumIgnored, valueChecksumIgnored, checksumUnseeded, batchEndIgnored
  case laterSegmentsKept, lengthTrusted, expiryIgnored, expectationIgnored
  /// A segment is sealed although a removal of all took it meanwhile.
  case sealsWhatWasRemoved
  /// The store takes writes although a failure left open what is on disk.
  case poisonForgotten

  // Notes left out: of files to be removed, of times.
  case retiredForgotten, emptyNotRetired, lastTimeForgotten, writtenForgotten

  /// Nothing is kept on the disk for removals and compactions.
  case noReserve

  // Promises of durability that are taken for weaker ones.
  case defaultDurabilityIgnored, shorterIntervalIgnored
  /// What a removal finds gone may come back with the next power failure.
  case absenceNotSynced

  // Updates: what they are to keep of the entry.
  case updateLosesMetadata, updateForgetsEnd, updateLosesIdleLimit

  // The index.
  /// An overwritten value keeps its entry, and those behind a removed one move past where they are looked for.
  case entryNotReplaced, neighboursLost
  /// A snapshot sees changes that were made after it.
  case snapshotNotPreserved

  // The order of use.
  case readsNotNoted, relocatedIsRecent, newestEvicted
  /// What is overwritten goes on counting as live.
  case deadCountsAsLive

  // Rules of replay.
  case oldestWins, tombstonesIgnored, sequenceStartsAtManifest

  // Compaction: decision by decision.
  /// What took the place of a dropped record may be lost with the power.
  case headNotSynced
  /// The same for what came after the round began, until the switch, or for segments of which nothing is
  /// copied.
  case headTakenFirst, headSyncedAfterSwitch, whollyDeadNotSynced
  case compactedNotSynced, compactedNotNamed, inputsUnlinkedFirst, pendingForgotten
  /// Tombstones go whatever they keep dead.
  case tombstonesDropped
  /// Each clause of the rule for tombstones, taken wrongly.
  case lowestSequenceIgnored, compactedAtEnd, deadPutsIgnored
  /// A segment that is cut counts as one that leaves; the manifest goes on listing all of it; an extension
  /// behind the cut goes with the segment although its put stays.
  case cutSegmentLeaves, cutNotListed, cutLosesExtensions
  case batchFieldsKept, sequenceRenewed, livenessByHash, movedBlindly
  /// A compaction by hand says nothing of a failed sync that it had no need of.
  case compactionKeepsQuiet

  // Checkpoints.
  /// One is listed before the log that it speaks of is on disk, or before it is itself.
  case checkpointOfUnsyncedLog, checkpointNotSynced
  case checkpointChecksumIgnored, checkpointShardChecksumIgnored
  /// Any file under the checkpoint's name is taken for it.
  case checkpointBindingIgnored
  /// A copy that was made before a removal counts, where the checkpoint was made after it.
  case copiesRevive
  /// Entries stay that name segments which are gone.
  case lostSegmentsKept
  /// Replay begins at the end of a segment instead of where the checkpoint ends.
  case replayFromWrongOffset
  /// Replay takes no notice of removals after the checkpoint.
  case tombstonesAfterCheckpointIgnored
  case usageForgotten
  /// The oldest entries are looked for in a part of the index.
  case oldestIncomplete
  /// Everything counts as accessed at the open.
  case recencyForgotten

  // Extensions of lifetimes.
  case extensionsIgnored, extensionsNotCopied, extensionsNotInCheckpoint, extensionSegmentsForgotten
  /// One counts for whatever value the key has.
  case extensionOfAnyVersion
  /// The copy of a put has the end that it was written with.
  case extensionNotFolded

  // Backup.
  case backupNotSynced

  // Limits.
  case limitsForgotten

  // Salvage.
  case salvageNotSynced, salvageDirectoryNotSynced, salvageExpiryDropped
  /// The copy gives numbers anew that lost records had.
  case salvageReusesVersions
  /// One page that cannot be read takes along all that was read with it.
  case salvageWindowBlanked
  /// The log of a process that was killed ends at the first damage.
  case salvageCutAtHole
  case salvageNoWarning

  // Asynchronous calls. No fuzzer makes them: Fuzz/planted-cache-bugs has the tests that notice.
  case cancelledWaits, lineMoved
}

#if CAIRN_PLANTED_BUGS
  private let active: PlantedBug? = unsafe getenv("CAIRN_PLANTED_BUG").flatMap {
    let name = unsafe String(cString: $0)
    guard let bug = PlantedBug(rawValue: name) else { fatalError("no planted bug \(name)") }
    return bug
  }

  /// Whether a mistake is to be made.
  @inline(never)
  package func planted(_ bug: PlantedBug) -> Bool { active == bug }
#else
  /// Whether a mistake is to be made: never in this build.
  @inline(__always)
  package func planted(_ bug: PlantedBug) -> Bool { false }
#endif
