import CairnStore

/// What crashes leave: images of the disk at the calls of a run, and the stores that are opened after a
/// crash of the run itself.
extension CrashRun {
  func takeImage(
    before call: SimulatedFileSystem.Call, in operation: Operation, _ model: ModelStore
  ) {
    trace?("    image \(images.count), \(model.states.count) states")
    var cut = RandomCut(FuzzRandom(seed: UInt64(choices.below(1 << 30))))
    images.append(
      (disk.afterPowerCut(&cut), model, call, operation, version: given.keys.max() ?? 0))
    tally["cuts"] += 1
  }

  /// The process dies, and perhaps the power fails too. The run continues with what is found. After
  /// a failed sync, the process may instead survive and reopen the store.
  func crash(afterFailedSync: Bool = false) throws {
    process.fileSystem.intervene = nil
    if !process.fileSystem.isDead { try checkSnapshot() }
    // If a process died during a read, no caller was told what it found.
    if process.fileSystem.isDead { damage.forget() }
    held = nil
    if afterFailedSync {
      tally["failed syncs"] += 1
      // Followers may have seen writes that are then discarded.
      followers?.allowOutdated()
    }
    if afterFailedSync, !process.fileSystem.isDead, choices.once(in: 3) {
      trace?("  closed and opened again")
      tally["reopenings after a failed sync"] += 1
      return try reopen(model.afterPowerCut, afterPowerCut: model.afterPowerCut, sameProcess: true)
    }
    process.kill()
    let losesPower = choices.once(in: 2)
    trace?("  crash, \(losesPower ? "power lost" : "process killed")")
    if losesPower {
      var cut = RandomCut(FuzzRandom(seed: UInt64(choices.below(1 << 30))))
      followers?.end()
      disk = disk.afterPowerCut(&cut)
      tally["cuts"] += 1
      return try reopen(model.afterPowerCut)
    }
    tally["kills"] += 1
    // The kernel may drop clean pages at any time, including those that a failed sync left clean.
    if afterFailedSync, choices.once(in: 2) {
      followers?.end()
      disk.dropCaches()
    }
    try reopen(
      afterFailedSync ? model.afterPowerCut : deathStates, afterPowerCut: model.afterPowerCut)
  }

  /// Opens the store, checks it, and starts the model from what exists. Meanwhile, an image may
  /// record a power cut, and the process may die, which repeats the open.
  ///
  /// - Parameters:
  ///   - legal: the states that may be found.
  ///   - afterPowerCut: the states that a cut before the end may leave, or `nil` if the page cache
  ///     holds nothing that is not on disk.
  func reopen(
    _ legal: [ModelState]? = nil, afterPowerCut: [ModelState]? = nil, sameProcess: Bool = false,
    keysByRecency: [[UInt8]]? = nil, deathLimit: Int = 3
  ) throws {
    hasWritten = false
    let legal = legal ?? [model.current]
    if !sameProcess {
      process.kill()
      process = SimulatedProcess.start(on: disk, seed: UInt64(choices.below(1 << 30)))
      if followers != nil { process.tellFollowers() }
    }
    var modelOfCuts = ModelStore(afterPowerCut?.first ?? legal[0])
    modelOfCuts.candidates = Array((afterPowerCut ?? legal).dropFirst())
    let imageCount = images.count
    var untilCut = 1 + choices.below(2 * cutInterval)
    var callsToDeath = deathLimit > 0 && choices.once(in: 6) ? choices.below(60) : -1
    let diesBeforeSwitch = deathLimit > 0 && choices.once(in: 8)
    process.fileSystem.intervene = { [unowned self] call in
      lookAsFollowers(in: .reopen, legal: legal)
      if diesBeforeSwitch, call == .exchange || call == .rename { return .die }
      untilCut -= 1
      if untilCut == 0 {
        untilCut = 1 + choices.below(2 * cutInterval)
        takeImage(before: call, in: .reopen, modelOfCuts)
        if afterPowerCut != nil { tally["cuts in a recovery from a kill"] += 1 }
      }
      defer { callsToDeath -= 1 }
      return callsToDeath == 0 ? .die : nil
    }
    defer { process.fileSystem.intervene = nil }
    do {
      let store = try sameProcess ? process.reopen(configuration) : process.open(configuration)
      process.fileSystem.intervene = nil
      model = ModelStore(
        try RecoveryCheck.match(
          store, legal, now: clock.now(), "in the course of a run",
          keysByRecency: keysByRecency))
      if let failureMeanwhile { throw failureMeanwhile }
      followers?.begin(on: disk, with: model.current)
    } catch let error as StoreError {
      guard process.fileSystem.isDead else {
        throw FuzzFailure("the store does not open: \(error)")
      }
      tally["kills in a recovery"] += 1
      return try reopen(
        legal, afterPowerCut: afterPowerCut, keysByRecency: keysByRecency,
        deathLimit: deathLimit - 1)
    }
    // What was found must also be possible after every cut.
    if afterPowerCut == nil {
      for index in imageCount..<images.count { images[index].model = model }
    }
  }

  func checkImages() throws {
    // A paused read would delay the freeing of what the recoveries of the images release.
    try followers?.finishReads()
    for (index, (image, model, call, operation, highestVersion)) in images.enumerated() {
      var check = RecoveryCheck(configuration: configuration, now: clock.now())
      // Writes to a recovered store evict nothing.
      check.configuration.countLimit = nil
      check.configuration.byteLimit = nil
      check.otherCheckpoints = checkpoints
      check.highestVersion = highestVersion
      do {
        if case .backup(let path) = operation, image.contents(of: path + "/MANIFEST") != nil {
          let process = SimulatedProcess.start(on: image, seed: 1)
          try checkBackup(path, on: process.environment, legal: model.states)
          process.kill()
          tally["backups at a cut"] += 1
        }
        try check.check(image, legal: model.afterPowerCut, &choices)
      } catch {
        throw FuzzFailure(
          "after a power cut at a \(call.rawValue) of \(operation.name), image \(index): \(error)")
      }
      tally.add(check.tally)
    }
    images = []
  }
}
