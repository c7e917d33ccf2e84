import CairnStore

extension Manifest {
  /// The highest sequence number before the open segments.
  var highestInLog: SequenceNumber {
    sealedSegments.reduce(floorSequence) { max($0, $1.highestSequence) }
  }
}

extension StoreError {
  /// Why a file counts as lost, or `nil` if the error is of another kind.
  var causeOfLostFile: Corruption.Cause? {
    if case .unsafeFile = self { return .unsafeFile }
    return isOfMedium ? .unreadable : nil
  }
}
