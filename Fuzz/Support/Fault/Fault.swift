import CairnStore

/// Something that goes wrong with the calls of a workload: what, from which call on, for how long.
package struct Fault: Sendable, CustomStringConvertible {
  package enum Effect: Sendable, Equatable {
    case error(Int32)
    /// A read or write of one byte.
    case oneByte
    /// A read or write of half of the bytes.
    case half
    /// A write of half of the bytes, then an error.
    case halfThenError(Int32)
  }

  package enum Extent: String, CaseIterable, Sendable {
    case once
    /// This call and all further ones of its kind.
    case kind = "from then on"
    /// All calls of any kind.
    case everything = "from then on, with all other calls"
  }

  /// The call that it begins with, counted from the beginning of the workload.
  package var index: Int
  package var effect: Effect
  package var extent: Extent

  /// What a call may fail with: its number and name.
  package static let errors: [(number: Int32, name: String)] = [
    (SystemError.inputOutput, "EIO"), (SystemError.noSpace, "ENOSPC"),
    (SystemError.quotaExceeded, "EDQUOT"), (SystemError.interrupted, "EINTR"),
    (SystemError.tooManyOpenFiles, "EMFILE"), (SystemError.noMemory, "ENOMEM"),
    (SystemError.readOnlyFileSystem, "EROFS"), (SystemError.accessDenied, "EACCES"),
  ]

  private static func name(_ number: Int32) -> String {
    errors.first { $0.number == number }?.name ?? "\(number)"
  }

  package var description: String {
    let what =
      switch effect {
      case .error(let number): Self.name(number)
      case .oneByte: "one byte"
      case .half: "half of the bytes"
      case .halfThenError(let number): "half of the bytes, then \(Self.name(number))"
      }
    return "call \(index): \(what), \(extent.rawValue)"
  }

  /// All faults that are worth trying with the calls of a workload that ran without one.
  package static func all(of calls: [SimulatedFileSystem.Call]) -> [Fault] {
    var faults: [Fault] = []
    for (index, call) in calls.enumerated() where call != .mappedWrite {
      for (number, _) in errors {
        for extent in [Extent.once, .kind] {
          faults.append(Fault(index: index, effect: .error(number), extent: extent))
        }
      }
      faults.append(
        Fault(index: index, effect: .error(SystemError.inputOutput), extent: .everything))
      guard call == .read || call == .write else { continue }
      faults.append(Fault(index: index, effect: .oneByte, extent: .once))
      faults.append(Fault(index: index, effect: .half, extent: .once))
      faults.append(Fault(index: index, effect: .half, extent: .kind))
      guard call == .write else { continue }
      for number in [SystemError.inputOutput, SystemError.noSpace] {
        faults.append(Fault(index: index, effect: .halfThenError(number), extent: .once))
      }
    }
    return faults
  }
}

/// Brings a fault about, in all the processes of a run, and notes what it hit.
package final class FaultInjector {
  private let fault: Fault?
  /// Every call so far.
  package private(set) var calls: [SimulatedFileSystem.Call] = []
  /// How many calls it made fail or cut short.
  package private(set) var hitCount = 0
  /// The kinds of calls that it made fail.
  package private(set) var failedCalls: Set<SimulatedFileSystem.Call> = []
  /// Calls are neither counted nor hit while this is set.
  package var isPaused = false
  private var interruptionCount = 0
  private var owedError: Int32?

  /// How often running an allocation is interrupted at most. It is the one call that the store
  /// tries again itself, in smaller steps, for as long as signals come.
  private static let interruptionLimit = 40

  package init(_ fault: Fault?) { self.fault = fault }

  /// Whether calls may go on failing to the end.
  package var isLasting: Bool { fault.map { $0.extent != .once } ?? false }

  /// Whether it is an error that a store takes from its directory's parent.
  package var forbidsParent: Bool {
    let errors = [SystemError.readOnlyFileSystem, SystemError.accessDenied]
    return errors.contains { fault?.effect == .error($0) }
  }

  package func install(on fileSystem: SimulatedFileSystem) {
    fileSystem.intervene = { [unowned self] in intervene($0) }
  }

  private func intervene(_ call: SimulatedFileSystem.Call) -> SimulatedFileSystem.Intervention? {
    if isPaused { return nil }
    let index = calls.count
    calls.append(call)
    guard let fault, index >= fault.index, call != .mappedWrite else { return nil }
    if let number = owedError, call == .write {
      owedError = nil
      return fail(call, number)
    }
    let kind = calls[fault.index]
    let isHit =
      switch fault.extent {
      case .once: index == fault.index
      case .kind: call == kind
      case .everything: true
      }
    guard isHit else { return nil }
    switch fault.effect {
    case .error(let number):
      if number == SystemError.interrupted, call == .allocate {
        interruptionCount += 1
        if interruptionCount > Self.interruptionLimit { return nil }
      }
      return fail(call, number)
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
    _ call: SimulatedFileSystem.Call, _ number: Int32
  ) -> SimulatedFileSystem.Intervention {
    hitCount += 1
    failedCalls.insert(call)
    return .fail(number)
  }

  /// Starts a new account of the kinds of calls that failed.
  package func forgetFailures() { failedCalls = [] }
}
