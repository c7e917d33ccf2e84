internal import CairnStore

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// What the Linux kernel tells of a shortage of memory. Waiting takes no processor time where the kernel
/// tells by itself:
///
/// - Pressure stall information (Weiner, 2018; Linux 4.20): it tells when tasks had to wait for memory for
///   longer than a given part of two seconds, which is the window that it grants without privileges. Of the
///   process's own group, `memory.pressure`, where that can be had; else of the machine.
/// - `memory.events` of a group of version 2: it tells when a limit was reached. That alone means little,
///   since a group that reads files reaches its limit all the time, so what the group uses decides.
///
/// What a group uses of its limit is looked at once a second in groups of version 1, and where there is no
/// pressure stall information. Where there is none of it all, nothing is ever told.
package final class SystemPressureSource: PressureSource {
  /// Tasks waiting for so many microseconds of two seconds: 5 and 20 % of the time some of them, 20 % of
  /// the time all of them.
  private static let triggers: [(text: String, pressure: MemoryPressure)] = [
    ("some 100000 2000000", .moderate), ("some 400000 2000000", .high),
    ("full 400000 2000000", .critical),
  ]

  /// From which share of its limit on a group is short of memory.
  private static let shares: [(share: Double, pressure: MemoryPressure)] = [
    (0.98, .critical), (0.95, .high), (0.90, .moderate),
  ]

  /// A descriptor, and what it means when the kernel raises it.
  private enum Watch: Sendable {
    case stall(MemoryPressure)
    case events(MemoryGroup)
    case stop

    var isStall: Bool { if case .stall = self { true } else { false } }
  }

  private struct State: Sendable {
    var isOpen = false
    var hasEnded = false
    var watches: [(descriptor: Int32, watch: Watch)] = []
    /// The end of the pipe that ends the waiting.
    var stopper: Int32 = -1
    /// The groups that are looked at now and then.
    var polledGroups: [MemoryGroup] = []
    /// What was told last of the use of a group, and when.
    var lastShare: (pressure: MemoryPressure, time: ContinuousClock.Instant)?
    /// `oom` of `memory.events`, by descriptor.
    var killCounts: [Int32: UInt64] = [:]
  }

  private let state = Lock(State())
  private let files: SystemFiles
  private let pollInterval: Duration
  /// How long what was told of the use of a group counts, before the same is told again.
  private let repeatInterval: Duration

  /// - Parameter root: the directory that stands for `/`: for tests.
  package init(
    root: String = "", pollInterval: Duration = .seconds(1),
    repeatInterval: Duration = .seconds(10)
  ) {
    files = SystemFiles(root: root)
    self.pollInterval = pollInterval
    self.repeatInterval = repeatInterval
  }

  deinit {
    state.withLock { state in
      for (descriptor, _) in state.watches { close(descriptor) }
      if state.stopper >= 0 { close(state.stopper) }
    }
  }

  /// Ends the waiting, now and for ever.
  package func stop() {
    state.withLock { state in
      state.hasEnded = true
      if state.stopper >= 0 {
        close(state.stopper)
        state.stopper = -1
      }
    }
  }

  /// For tests: of how many files the kernel tells by itself, and how many groups are looked at.
  package var watchCounts: (told: Int, polled: Int) {
    state.withLock { state in
      openOnce(&state)
      return (state.watches.count - 1, state.polledGroups.count)
    }
  }

  /// Called by one thread at a time.
  package func next() -> MemoryPressure? {
    while true {
      let (watches, polledGroups, hasEnded) = state.withLock { state in
        openOnce(&state)
        return (state.watches, state.polledGroups, state.hasEnded)
      }
      // The pipe alone tells nothing.
      if hasEnded || (watches.count <= 1 && polledGroups.isEmpty) { return nil }
      var raised: MemoryPressure?
      for index in wait(watches.map(\.descriptor), polls: !polledGroups.isEmpty) {
        switch watches[index].watch {
        case .stop: return nil
        case .stall(let pressure): raised = max(raised ?? pressure, pressure)
        case .events(let group):
          if let pressure = pressure(ofEventsIn: group, watches[index].descriptor) {
            raised = max(raised ?? pressure, pressure)
          }
        }
      }
      for group in polledGroups {
        if let pressure = pressure(ofUseOf: group) { raised = max(raised ?? pressure, pressure) }
      }
      if let raised { return raised }
    }
  }

  // MARK: What is watched

  private func openOnce(_ state: inout State) {
    if state.isOpen { return }
    state.isOpen = true
    var ends: [Int32] = [-1, -1]
    // SAFETY: room for two.
    let result = unsafe ends.withUnsafeMutableBufferPointer {
      unsafe pipe($0.baseAddress)
    }
    if result != 0 { return }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    state.watches.append((ends[0], .stop))
    state.stopper = ends[1]
    let groups = MemoryGroup.all(files)
    var stallFiles = ["/proc/pressure/memory"]
    for group in groups where group.version == .two && !group.isRoot {
      stallFiles.insert("\(group.directory)/memory.pressure", at: 0)
    }
    // The first of them that can be had.
    for path in stallFiles where !state.watches.contains(where: { $0.watch.isStall }) {
      for trigger in Self.triggers {
        if let descriptor = openTrigger(path, trigger.text) {
          state.watches.append((descriptor, .stall(trigger.pressure)))
        }
      }
    }
    let hasStalls = state.watches.contains { $0.watch.isStall }
    for group in groups where !group.isRoot {
      if group.version == .two {
        let descriptor = unsafe open(
          files.root + group.directory + "/memory.events", O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        if descriptor >= 0 {
          state.killCounts[descriptor] = Self.killCount(descriptor)
          state.watches.append((descriptor, .events(group)))
        }
        if hasStalls && descriptor >= 0 { continue }
      }
      if group.usedShare(files) != nil { state.polledGroups.append(group) }
    }
  }

  /// Asks the kernel to raise a descriptor when tasks wait for longer than `trigger` says.
  private func openTrigger(_ path: String, _ trigger: String) -> Int32? {
    let descriptor = unsafe open(files.root + path, O_RDWR | O_CLOEXEC | O_NONBLOCK)
    if descriptor < 0 { return nil }
    let text = Array(trigger.utf8) + [0]
    // SAFETY: the buffer is as long as is said.
    let count = unsafe text.withUnsafeBytes { unsafe write(descriptor, $0.baseAddress, $0.count) }
    if count == text.count { return descriptor }
    close(descriptor)
    return nil
  }

  // MARK: What is told

  /// Waits until some of the descriptors are raised.
  ///
  /// - Parameter polls: whether to wait for `pollInterval` at most.
  /// - Returns: their indices.
  private func wait(_ descriptors: [Int32], polls: Bool) -> [Int] {
    let timeout = polls ? Int32(clamping: max(1, pollInterval.milliseconds)) : -1
    // A pipe whose other end is closed is raised by POLLHUP, which is always told.
    var polled = descriptors.map { pollfd(fd: $0, events: Int16(POLLPRI), revents: 0) }
    // SAFETY: the array is as long as is said.
    let count = unsafe polled.withUnsafeMutableBufferPointer {
      unsafe poll($0.baseAddress, nfds_t($0.count), timeout)
    }
    if count <= 0 { return [] }
    var raised: [Int] = []
    for index in polled.indices where polled[index].revents != 0 {
      let events = Int32(polled[index].revents)
      if index == 0 || events & POLLPRI != 0 {
        raised.append(index)
      } else {
        // Its group is gone: the kernel would raise it for ever.
        forget(polled[index].fd)
      }
    }
    return raised
  }

  private func forget(_ descriptor: Int32) {
    state.withLock { $0.watches.removeAll { $0.descriptor == descriptor } }
    close(descriptor)
  }

  /// How often the kernel found nothing more to take back. Has to be read from the descriptor that is
  /// watched: that is what lowers it again.
  private static func killCount(_ descriptor: Int32) -> UInt64 {
    SystemFiles.text(of: descriptor).flatMap { SystemFiles.number(named: "oom", inText: $0) } ?? 0
  }

  /// What it means that `memory.events` has changed.
  private func pressure(ofEventsIn group: MemoryGroup, _ descriptor: Int32) -> MemoryPressure? {
    let count = Self.killCount(descriptor)
    let isNew = state.withLock { state in
      defer { state.killCounts[descriptor] = count }
      return count > state.killCounts[descriptor] ?? 0
    }
    return isNew ? .critical : pressure(ofUseOf: group)
  }

  /// What it means how much a group uses, if that is news: more than it was, or for so long.
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
