#if CAIRN_PLANTED_BUGS
  internal import Glibc
#endif

/// Mistakes in the caches that can be switched on to see whether the tests notice, as `PlantedBug` of the
/// store has them. `CAIRN_PLANTED_CACHE_BUG` names the one that is on.
@usableFromInline
enum PlantedCacheBug: String, CaseIterable, Sendable {
  // Reads.
  case expiryIgnored, orderForgotten, accessTimeForgotten
  // Writes.
  case oldValueKept, refusalKeepsOldValue, oldCostKept, replacementOverLimit
  // Removals.
  case costOfRemovedKept, deadlineOfRemovedKept, bucketsNotClosed
  // Expiry.
  case expiredSpared
  // What was fetched.
  case ticketIgnored, writeNotNoted, clearNotNoted, promotionReplaces
  // Trims and policies.
  case trimTakesNewValue, handSeesNewEntry
  // After the lock.
  case removalNotTold, manyDestroyedHere, observerIDReused
  // Loads.
  case everyoneLoads, loadWithoutLook, leaverCancelsLoad, abandonedLoadGoesOn, circleUnseen
  case writeDuringLoadUnseen, outdatedLoadJoined, loadedReplaces, urgencyLost
  // What is held of a tier below.
  case lateWriteRevives, olderWriteReplaces, absenceNotNoted, refusedPromotionNotNoted
  case keysByEquality, promotionCostsNothing, promotionForgetsLifetime
  case removalBelowUnheard, writeBelowUnheard, seenNotNoted, uncertainWriteKept, memoryFirst
  case removedKeyDecoded, iterationNotNoted, othersRemovalServed, closeBelowUnheard, lateHitIsMiss
  case recencyNotTold, victimInUse, takenNotSpared, tellingLeftToOther, manyReadsLeft
  case idleReadToldLate, tellingProlongsIdle
  case toldBeforeFreed, freedAfterOthersTelling, movedUnseen, evictedNotTold
  case frontLeavesMemory, batchRemovalUnheard
  // One cache of a name.
  case closingStaysShared, deadPlacesKept, keptTierAwaited, openerWaits, secondCloseEnds
  // On disk: metadata and coders.
  case tagNotWritten, tagIgnored, metadataNotChecked, dropTakesNewValue, droppedWhereKept
  // On disk: reads, writes, and what is told of them.
  case takeReturnsOld, batchTellsAll, zeroAgeKeepsSome
  case diskInsertNotTold, diskCauseLost, subscriptFailsSilently
  case evictionToldFirst, batchUnseenByLoads
  // On disk: where a cache lies, and a damaged one.
  case relativeCacheHome, corruptStoreWiped, quarantineUnlocked, quarantineNotSynced
  case cacheInsideCache
  // Errors.
  case errorShown
}

#if CAIRN_PLANTED_BUGS
  private let active: PlantedCacheBug? = unsafe getenv("CAIRN_PLANTED_CACHE_BUG").flatMap {
    let name = unsafe String(cString: $0)
    guard let bug = PlantedCacheBug(rawValue: name) else { fatalError("no planted bug \(name)") }
    return bug
  }

  /// Whether a mistake is to be made.
  @usableFromInline
  @inline(never)
  func plantedInCache(_ bug: PlantedCacheBug) -> Bool { active == bug }
#else
  /// Whether a mistake is to be made: never in this build.
  @inlinable
  @inline(__always)
  func plantedInCache(_ bug: PlantedCacheBug) -> Bool { false }
#endif
