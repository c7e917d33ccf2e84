internal import CairnLibC
internal import CairnStore
internal import Synchronization

/// Reports of memory shortages from the Linux kernel. Waiting takes no processor time if the kernel
/// can notify:
///
/// - Pressure stall information (Weiner, 2018; Linux 4.20) notifies when tasks have had to wait for
///   memory for longer than a given part of two seconds. An unprivileged process may use only this
///   window. Uses `memory.pressure` of the process's own group if available, else that of the
///   machine.
/// - `memory.events` of a version 2 group notifies when a limit is reached. That alone means
///   little: a group that reads files reaches its limit all the time. So the report depends on the
///   group's usage.
///
/// For version 1 groups, and without pressure stall information, the source checks once a second
/// how much of its limit each group uses. If none of these exists, it reports nothing.
package final class SystemPressureSource: PressureSource {
  /// The microseconds in every two seconds that tasks wait for memory: some tasks for 5 % or 20 %
  /// of the time, or all tasks for 20 %.
  private static let triggers: [(text: String, pressure: MemoryPressure)] = [
    ("some 100000 2000000", .moderate), ("some 400000 2000000", .high),
    ("full 400000 2000000", .critical),
  ]

  /// The shares of its limit at which a group is short of memory.
  private static let shares: [(share: Double, pressure: MemoryPressure)] = [
    (0.98, .critical), (0.95, .high), (0.90, .moderate),
  ]

  /// The meaning of a descriptor's signal.
  enum Watch: Sendable {
    case stall(MemoryPressure)
    case events(MemoryGroup)

    var isStall: Bool { if case .stall = self { true } else { false } }
  }

  struct State: Sendable {
    /// Whether `watches` and `polledGroups` are those of the process's groups.
    var isWatching = false
    /// Whether there was ever something to watch.
    var hasWatched = false
    /// Whether something cannot be watched until a descriptor is free.
    var isPartial = false
    var watches: [(descriptor: Int32, watch: Watch)] = []
    var polledGroups: [MemoryGroup] = []
    /// The last report about a group's usage, and its time.
    var lastShare: (pressure: MemoryPressure, time: ContinuousClock.Instant)?
    /// The last `oom` count in `memory.events`, by descriptor.
    var killCounts: [Int32: UInt64] = [:]
  }

  let state = Lock(State())
  private let files: SystemFiles
  private let pollInterval: Duration
  /// How long to wait before a report about a group's usage is repeated.
  private let repeatInterval: Duration

  /// - Parameters:
  ///   - root: the directory that replaces `/`: for tests.
  ///   - lacksDescriptors: whether to act as if no descriptor were left: for tests.
  package init(
    root: String = "", pollInterval: Duration = .seconds(1),
    repeatInterval: Duration = .seconds(10),
    lacksDescriptors: @escaping @Sendable () -> Bool = { false }
  ) {
    files = SystemFiles(root: root, lacksDescriptors: lacksDescriptors)
    self.pollInterval = pollInterval
    self.repeatInterval = repeatInterval
  }

  deinit {
    state.withLock { state in
      for (descriptor, _) in state.watches { close(descriptor) }
    }
  }

  /// Called by one thread at a time.
  package func next() -> MemoryPressure? {
    while true {
      let (watches, polledGroups, isPartial) = state.withLock { state in
        if !state.isWatching { watch(&state) }
        return (state.watches, state.polledGroups, state.isPartial)
      }
      if watches.isEmpty && polledGroups.isEmpty {
        guard state.withLock({ $0.hasWatched || $0.isPartial }) else { return nil }
        watchAnew()
        pause(for: pollInterval)
        continue
      }
      var raised: MemoryPressure?
      // Whether a group no longer exists, or more can be watched.
      var isOutdated = isPartial
      let signals = wait(watches.map(\.descriptor), polls: !polledGroups.isEmpty || isPartial)
      for (index, hasError) in signals {
        let (descriptor, watch) = watches[index]
        var isGone = false
        switch watch {
        case .stall(let pressure):
          isGone = hasError
          if !isGone { raised = max(raised ?? pressure, pressure) }
        case .events(let group):
          let count = Self.killCount(descriptor)
          isGone = count == nil
          if let count, let pressure = pressure(ofEventsIn: group, descriptor, killCount: count) {
            raised = max(raised ?? pressure, pressure)
          }
        }
        if isGone {
          isOutdated = true
          break
        }
      }
      for group in polledGroups {
        isOutdated = isOutdated || files.isMissing(group.usageFile)
        if let pressure = pressure(ofUseOf: group) { raised = max(raised ?? pressure, pressure) }
      }
      if isOutdated { watchAnew() }
      if let raised { return raised }
      // At most once in each interval, whatever the kernel reports.
      if isOutdated { pause(for: pollInterval) }
    }
  }

  // MARK: Watches

  func watch(_ state: inout State) {
    state.isWatching = true
    files.shortage.isNoted.store(false, ordering: .relaxed)
    defer {
      state.isPartial = files.shortage.isNoted.load(ordering: .relaxed)
      if !state.watches.isEmpty || !state.polledGroups.isEmpty { state.hasWatched = true }
    }
    let groups = MemoryGroup.all(files)
    var stallFiles = ["/proc/pressure/memory"]
    for group in groups where group.version == .two {
      stallFiles.insert("\(group.directory)/memory.pressure", at: 0)
    }
    // Use the first one available.
    for path in stallFiles where !state.watches.contains(where: { $0.watch.isStall }) {
      for trigger in Self.triggers {
        if let descriptor = openTrigger(path, trigger.text) {
          state.watches.append((descriptor, .stall(trigger.pressure)))
        }
      }
    }
    let hasStalls = state.watches.contains { $0.watch.isStall }
    for group in groups {
      if group.version == .two {
        let path = group.directory + "/memory.events"
        if let descriptor = files.descriptor(of: path, O_RDONLY | O_NONBLOCK) {
          if let count = Self.killCount(descriptor) {
            state.killCounts[descriptor] = count
            state.watches.append((descriptor, .events(group)))
            if hasStalls { continue }
          } else {
            close(descriptor)
          }
        }
      }
      if group.usedShare(files) != nil { state.polledGroups.append(group) }
    }
  }

  /// Opens a descriptor that the kernel signals when tasks wait for longer than `trigger` allows.
  private func openTrigger(_ path: String, _ trigger: String) -> Int32? {
    guard let descriptor = files.descriptor(of: path, O_RDWR | O_NONBLOCK) else { return nil }
    let text = Array(trigger.utf8) + [0]
    // SAFETY: the buffer has the given length.
    let count = unsafe text.withUnsafeBytes { unsafe write(descriptor, $0.baseAddress, $0.count) }
    if count == text.count { return descriptor }
    close(descriptor)
    return nil
  }

  // MARK: Reports

  /// Waits until some of the descriptors are signalled.
  ///
  /// - Parameter polls: whether to wait for `pollInterval` at most.
  /// - Returns: the indices of the signalled descriptors, and whether the kernel reports an error.
  ///   It does so for the triggers of a removed group, and for each change of `memory.events`.
  func wait(_ descriptors: [Int32], polls: Bool) -> [(index: Int, hasError: Bool)] {
    let timeout = polls ? Int32(clamping: max(1, pollInterval.milliseconds)) : -1
    var polled = descriptors.map { pollfd(fd: $0, events: Int16(POLLPRI), revents: 0) }
    // SAFETY: the array has the given length.
    let count = unsafe polled.withUnsafeMutableBufferPointer {
      unsafe poll($0.baseAddress, nfds_t($0.count), timeout)
    }
    if count <= 0 { return [] }
    return polled.indices.filter { polled[$0].revents != 0 }.map { index in
      (index, Int32(polled[index].revents) & POLLERR != 0)
    }
  }

  /// Lets the next wait watch the groups that the process is in by then, because a watched group no
  /// longer exists, or no descriptor was left. The kernel signals the files of a removed group
  /// forever.
  private func watchAnew() {
    state.withLock { state in
      for (descriptor, _) in state.watches { close(descriptor) }
      state.watches = []
      state.polledGroups = []
      state.killCounts = [:]
      state.isWatching = false
    }
  }

  /// How often the kernel found nothing more to reclaim. Must be read from the watched descriptor,
  /// because reading clears the signal.
  ///
  /// - Returns: `nil` if the file cannot be read, because its group no longer exists.
  private static func killCount(_ descriptor: Int32) -> UInt64? {
    SystemFiles.text(of: descriptor).map { SystemFiles.number(named: "oom", inText: $0) ?? 0 }
  }

  /// The pressure to report after a change of `memory.events`.
  private func pressure(
    ofEventsIn group: MemoryGroup, _ descriptor: Int32, killCount count: UInt64
  ) -> MemoryPressure? {
    let isNew = state.withLock { state in
      defer { state.killCounts[descriptor] = count }
      return count > state.killCounts[descriptor] ?? 0
    }
    return isNew ? .critical : pressure(ofUseOf: group)
  }

  /// The pressure to report for a group's usage, or `nil` if the last report is recent and was at
  /// least as high.
  private func pressure(ofUseOf group: MemoryGroup) -> MemoryPressure? {
    let share = group.usedShare(files) ?? 0
    let pressure = Self.shares.first { share >= $0.share }?.pressure
    let now = ContinuousClock.now
    return state.withLock { state in
      guard let pressure else {
        state.lastShare = nil
        return nil
      }
      if let last = state.lastShare, pressure <= last.pressure,
        last.time.duration(to: now) < repeatInterval
      {
        return nil
      }
      state.lastShare = (pressure, now)
      return pressure
    }
  }
}
