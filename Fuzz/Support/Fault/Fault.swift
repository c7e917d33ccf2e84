import CairnLibC
package import CairnStore

extension SystemError {
  package static let inputOutput = EIO
}

/// A fault in the calls of a workload: what happens, from which call on, and for how long.
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
    /// This call and all later ones of its kind.
    case kind = "from then on"
    /// All calls of any kind.
    case everything = "from then on, with all other calls"
  }

  /// The call at which the fault begins, counted from the start of the workload.
  package var index: Int
  package var effect: Effect
  package var extent: Extent
  /// What else fails once a sync has failed.
  package var second: Second?

  /// A fault in the recovery that follows a failed sync.
  package struct Second: Sendable {
    /// The call, counted from the start of the open.
    package var index: Int
    package var effect: Effect
  }

  package init(index: Int, effect: Effect, extent: Extent, second: Second? = nil) {
    self.index = index
    self.effect = effect
    self.extent = extent
    self.second = second
  }

  /// The errors that a call may fail with: number and name.
  package static let errors: [(number: Int32, name: String)] = [
    (SystemError.inputOutput, "EIO"), (SystemError.noSpace, "ENOSPC"),
    (SystemError.quotaExceeded, "EDQUOT"), (SystemError.fileTooLarge, "EFBIG"),
    (SystemError.interrupted, "EINTR"),
    (SystemError.tooManyOpenFiles, "EMFILE"), (SystemError.noMemory, "ENOMEM"),
    (SystemError.readOnlyFileSystem, "EROFS"), (SystemError.accessDenied, "EACCES"),
  ]

  private static func name(_ number: Int32) -> String {
    errors.first { $0.number == number }?.name ?? "\(number)"
  }

  private static func name(_ effect: Effect) -> String {
    switch effect {
    case .error(let number): name(number)
    case .oneByte: "one byte"
    case .half: "half of the bytes"
    case .halfThenError(let number): "half of the bytes, then \(name(number))"
    }
  }

  package var description: String {
    let then = second.map { ", in the recovery call \($0.index): \(Self.name($0.effect))" } ?? ""
    return "call \(index): \(Self.name(effect)), \(extent.rawValue)\(then)"
  }

  /// All faults worth trying with the calls of a workload that ran without one, by call.
  package static func all(
    of calls: [SimulatedFileSystem.Call]
  ) -> [(index: Int, faults: [Fault])] {
    calls.enumerated().filter { $0.element != .mappedWrite }.map { index, call in
      var faults: [Fault] = []
      for (number, _) in errors {
        for extent in [Extent.once, .kind] {
          faults.append(Fault(index: index, effect: .error(number), extent: extent))
        }
      }
      faults.append(
        Fault(index: index, effect: .error(SystemError.inputOutput), extent: .everything))
      guard call == .read || call == .write else { return (index, faults) }
      faults.append(Fault(index: index, effect: .oneByte, extent: .once))
      faults.append(Fault(index: index, effect: .half, extent: .once))
      faults.append(Fault(index: index, effect: .half, extent: .kind))
      guard call == .write else { return (index, faults) }
      for number in [SystemError.inputOutput, SystemError.noSpace] {
        faults.append(Fault(index: index, effect: .halfThenError(number), extent: .once))
      }
      return (index, faults)
    }
  }

  /// All faults worth trying in a recovery that makes these calls, after the sync at `index` has
  /// failed.
  package static func seconds(
    after index: Int, calls: ArraySlice<SimulatedFileSystem.Call>
  ) -> [[Fault]] {
    calls.enumerated().filter { $0.element != .mappedWrite }.map { place, call in
      var effects: [Effect] = [.error(SystemError.inputOutput), .error(SystemError.noSpace)]
      if call == .read || call == .write { effects += [.oneByte, .half] }
      if call == .write { effects.append(.halfThenError(SystemError.noSpace)) }
      return effects.map {
        Fault(
          index: index, effect: .error(SystemError.inputOutput), extent: .once,
          second: Second(index: place, effect: $0))
      }
    }
  }
}
