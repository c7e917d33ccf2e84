import CairnStore

/// Causes a fault in all the processes of a run, and records which calls it hit.
package final class FaultInjector {
  /// A call that was made to fail.
  package struct Failure: CustomStringConvertible {
    package var call: SimulatedFileSystem.Call
    package var number: Int32
    /// The file of the call, or `nil` if it has none.
    package var path: String?

    package var description: String { "\(call) \(path ?? "") with \(number)" }
    /// The last name in the path.
    package var name: Substring { path?.split(separator: "/").last ?? "" }
  }

  private let fault: Fault?
  /// Every call so far.
  package private(set) var calls: [SimulatedFileSystem.Call] = []
  /// How many calls the injector made fail or cut short.
  package private(set) var hitCount = 0
  /// All calls that the injector made fail.
  package private(set) var failures: [Failure] = []
  /// How many failures came before the current count.
  private var forgottenCount = 0
  /// Calls are neither counted nor hit while this is set.
  package var isPaused = false
  private var interruptionCount = 0
  private var owedError: Int32?
  /// The calls so far of the open that followed a failed sync.
  package private(set) var recoveryCalls: Range<Int>?

  /// The maximum number of consecutive interruptions of an allocation. This is the only call that
  /// the store itself retries, in smaller steps, as long as signals arrive.
  private static let interruptionLimit = 40

  package init(_ fault: Fault?) { self.fault = fault }

  /// Whether calls may keep failing to the end.
  package var isLasting: Bool { fault.map { $0.extent != .once } ?? false }

  /// Whether the fault is an error that a store accepts from its directory's parent.
  package var forbidsParent: Bool {
    let errors = [SystemError.readOnlyFileSystem, SystemError.accessDenied]
    return errors.contains { fault?.effect == .error($0) }
  }

  /// The calls that failed in the current count.
  package var currentFailures: ArraySlice<Failure> { failures[forgottenCount...] }
  /// The kinds of these calls.
  package var failedCalls: Set<SimulatedFileSystem.Call> { Set(failuresOfStore.map(\.call)) }

  /// The failures in the current count that the store cannot do without. A failure during a backup is
  /// only the backup's failure, and a store can do without a prepared manifest.
  var failuresOfStore: [Failure] {
    currentFailures.filter {
      $0.path?.hasPrefix("/backup") != true && $0.name != FileName.newNextManifest
    }
  }

  package func install(on fileSystem: SimulatedFileSystem) {
    fileSystem.intervene = { [unowned self, unowned fileSystem] call in
      intervene(call, fileSystem)
    }
  }

  /// Called when an open begins or ends. The second fault hits the first open after a failed sync.
  package func noteOpening(isEnd: Bool = false) {
    if let range = recoveryCalls {
      if isEnd, range.isEmpty { recoveryCalls = range.lowerBound..<calls.count }
    } else if !isEnd, failedCalls.contains(.synchronizeData) {
      recoveryCalls = calls.count..<calls.count
    }
  }

  private func intervene(
    _ call: SimulatedFileSystem.Call, _ fileSystem: SimulatedFileSystem
  ) -> SimulatedFileSystem.Intervention? {
    if isPaused { return nil }
    let index = calls.count
    calls.append(call)
    guard let fault, index >= fault.index, call != .mappedWrite else { return nil }
    if let number = owedError, call == .write {
      owedError = nil
      return fail(call, number, fileSystem)
    }
    if let second = fault.second, let start = recoveryCalls?.lowerBound,
      index == start + second.index
    {
      return bringAbout(second.effect, call, fileSystem)
    }
    let kind = calls[fault.index]
    let isHit =
      switch fault.extent {
      case .once: index == fault.index
      case .kind: call == kind
      case .everything: true
      }
    return isHit ? bringAbout(fault.effect, call, fileSystem) : nil
  }

  private func bringAbout(
    _ effect: Fault.Effect, _ call: SimulatedFileSystem.Call, _ fileSystem: SimulatedFileSystem
  ) -> SimulatedFileSystem.Intervention? {
    switch effect {
    case .error(let number):
      if number == SystemError.interrupted, call == .allocate {
        interruptionCount += 1
        if interruptionCount > Self.interruptionLimit { return nil }
      }
      return fail(call, number, fileSystem)
    case .oneByte:
      hitCount += 1
      return .transferAtMost(1)
    case .half:
      hitCount += 1
      return .transferHalf
    case .halfThenError(let number):
      hitCount += 1
      owedError = number
      return .transferHalf
    }
  }

  private func fail(
    _ call: SimulatedFileSystem.Call, _ number: Int32, _ fileSystem: SimulatedFileSystem
  ) -> SimulatedFileSystem.Intervention {
    hitCount += 1
    failures.append(Failure(call: call, number: number, path: fileSystem.currentPath))
    return .fail(number)
  }

  /// Starts a new count of failed calls.
  package func forgetFailures() { forgottenCount = failures.count }
}
