import CairnStore

/// What followers of a run's store see.
extension CrashRun {
  /// Reads the store as the followers do: before a call of the writer, or after one of its writes
  /// into a mapping.
  ///
  /// - Parameter legal: the states that the store may have; `nil`: those that the operation may
  ///   have led to.
  func lookAsFollowers(in operation: Operation, legal: [ModelState]? = nil) {
    guard let followers, failureMeanwhile == nil, !process.fileSystem.isDead else { return }
    do {
      let isOrdered = legal == nil && operation.leadsInOrder
      try followers.look(
        legal ?? model.afterDeath, from: isOrdered ? model.acknowledgedCandidateCount : nil,
        now: clock.now())
    } catch {
      failureMeanwhile = FuzzFailure("during \(operation.name), a follower: \(error)")
    }
  }

  /// The states that may be found if the process dies now: none earlier than what a follower has
  /// seen.
  var deathStates: [ModelState] {
    let states = model.afterDeath
    let seenCount = followers?.seenCount ?? 0
    return Array(states.dropFirst(max(0, seenCount - model.acknowledgedCandidateCount)))
  }
}

extension Operation {
  /// Whether the possible states follow one another in a known order.
  fileprivate var leadsInOrder: Bool {
    switch self {
    case .trimBytes, .trimOlder: false
    default: true
    }
  }
}
