import CairnStore

/// What reads of a run return, and how far an operation got if that is unknown.
extension FaultRun {
  /// Determines how far an operation of many steps got before an error.
  ///
  /// - Parameter open: other states that the operation may have reached.
  func settlePart(_ store: Store, of steps: [ModelState], orIn open: [ModelState] = []) throws {
    try pausing {
      let contents = try StoreContents(of: store, now: clock.now())
      if contents.match([live]) != nil { return }
      for step in steps {
        model.acknowledge(step)
        live = step
        if contents.match([step]) != nil { return }
      }
      if let state = contents.match(open) {
        model.candidates = open
        live = state
        return
      }
      throw FuzzFailure("after a part: \(contents.differences(from: live))")
    }
  }

  /// Determines what a trim that could not read all records has removed: any of the entries, one
  /// after another in the order of accesses. Nothing else may have changed.
  func settleTrim(_ store: Store, _ operation: Operation) throws {
    var hasRemoved = false
    try pausing {
      let contents = try StoreContents(of: store, now: clock.now())
      for key in live.keysByRecency(now: clock.now()) where contents.entries[key] == nil {
        hasRemoved = true
        live[key] = nil
        model.acknowledge(live)
      }
      if contents.match([live]) == nil {
        throw FuzzFailure("after a trim: \(contents.differences(from: live))")
      }
    }
    // If nothing could be removed, nothing was written, and earlier writes are not promised.
    if hasRemoved, operation.durability == .durable { model.settle() }
  }

  /// The steps of a write whose evictions could not read all records: instead of an unreadable
  /// entry, another one may be gone.
  func sparing(
    _ steps: [ModelState], of operation: Operation, _ store: Store
  ) throws -> [ModelState] {
    let written = operation.steps(from: live, now: clock.now())
    guard let last = written.last else { return steps }
    return try pausing {
      let contents = try StoreContents(of: store, now: clock.now())
      // A read that failed once may have succeeded later.
      if contents.match([live] + steps) != nil { return steps }
      let gone = last.keysByRecency(now: clock.now()).filter { contents.entries[$0] == nil }
      // An eviction spares what the operation wrote.
      guard gone.count <= steps.count - written.count, gone.allSatisfy({ last[$0] == live[$0] })
      else { return steps }
      return written + last.removing(gone[...])
    }
  }

  /// Determines which of the possible results reads return after an error.
  func settleLive(_ store: Store, steps: [ModelState]) throws {
    if !steps.isEmpty { model.candidates = steps }
    try pausing {
      let contents = try StoreContents(of: store, now: clock.now())
      guard let state = contents.match([live] + steps) else {
        throw FuzzFailure("after an error: \(contents.differences(from: live))")
      }
      live = state
    }
  }

  /// Everything acknowledged must exist while the process lives.
  func checkReads(_ store: Store) throws {
    try pausing {
      let contents = try StoreContents(of: store, now: clock.now())
      if contents.match([live]) == nil {
        throw FuzzFailure("reads: \(contents.differences(from: live))")
      }
    }
  }
}
