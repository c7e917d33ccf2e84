/// What one call did to one key, with its outcome and its times: an operation of a history.
package struct HistoryOperation: Sendable, CustomStringConvertible {
  /// Values are numbers from 1 on. Versions are those of the store; 0 means none or unknown.
  package enum Action: Sendable, Hashable {
    case write(value: UInt64, ending: Ending = .never)
    /// A removal that does not return whether the key existed: of all keys, or in a batch.
    case erase
    case remove
    case read
    case compareAndSet(expecting: UInt64, value: UInt64)
    case compareAndRemove(expecting: UInt64)
    /// A removal that returns the value.
    case take
    /// Makes the value survive the passing of time, if it has a lifetime.
    case setLifetime
    /// Time passes, and values that end in that time are gone.
    case passTime
  }

  /// When a written value expires. The clock stands still while threads are at work, so this is
  /// known.
  package enum Ending: UInt64, Sendable {
    /// Not during a run.
    case never
    /// During a run, when its lifetime ends.
    case soon
    /// During a run, by its idle limit, which nothing extends.
    case whenIdle
    /// As soon as it is written.
    case atOnce
  }

  package enum Outcome: Sendable, Hashable {
    /// The call had not returned when the process died: it may or may not have taken effect.
    case pending
    case done
    /// The value was stored with this version.
    case stored(version: UInt64)
    /// Whether the key existed and was removed.
    case removed(Bool)
    /// Whether the key existed and was extended.
    case extended(Bool)
    /// What a read found, or which value was taken; 0 for none.
    case found(value: UInt64, version: UInt64)
    /// What a compare-and-set found instead of the expected version; 0 for none.
    case mismatch(version: UInt64)
  }

  package var action: Action
  package var outcome: Outcome
  /// Times of one clock. The call took effect between them.
  package var begin: UInt64
  package var end: UInt64
  package var thread: Int
  package var key: Int

  package init(
    _ action: Action, _ outcome: Outcome, begin: UInt64, end: UInt64, thread: Int = 0, key: Int = 0
  ) {
    self.action = action
    self.outcome = outcome
    self.begin = begin
    self.end = end
    self.thread = thread
    self.key = key
  }

  package var isPending: Bool { outcome == .pending }

  /// Whether the operation certainly changed nothing.
  var onlyLooked: Bool {
    switch outcome {
    case .found(let value, _): action == .read || value == 0
    case .mismatch, .removed(false), .extended(false): true
    case .pending, .done, .stored, .removed(true), .extended(true): false
    }
  }

  package var description: String {
    "\(begin)–\(isPending ? "" : "\(end)") thread \(thread), key \(key): \(action): \(outcome)"
  }
}

/// The contents of one key, as far as a history shows them.
package struct KeyState: Hashable, Sendable {
  /// 0 for none.
  package var value: UInt64 = 0
  /// 0 if unknown.
  package var version: UInt64 = 0
  /// The highest version that was seen. Later writes have higher ones.
  package var highestVersion: UInt64 = 0
  /// The end of the value; never `atOnce`.
  package var ending = HistoryOperation.Ending.never
  /// Whether an extension may have given the value a higher version.
  package var mayBeRewritten = false

  package init() {}

  package init(value: UInt64, version: UInt64) {
    self.value = value
    self.version = version
    highestVersion = version
  }

  /// The state after an operation, or `nil` if this state rules out the operation's outcome.
  func applying(_ operation: HistoryOperation) -> KeyState? {
    switch (operation.action, operation.outcome) {
    case (.write(let value, let ending), .stored(let version)): writing(value, version, ending)
    case (.write(let value, let ending), .done), (.write(let value, let ending), .pending):
      writing(value, ending)
    case (.erase, .done), (.erase, .pending), (.remove, .pending): erased
    case (.remove, .removed(let wasThere)): wasThere == (value != 0) ? erased : nil
    case (.read, .found(let value, let version)): value == self.value ? seeing(version) : nil
    case (.compareAndSet(let expected, let value), .stored(let version)):
      seeing(expected, orNothing: true)?.writing(value, version)
    case (.compareAndSet(let expected, let value), .pending):
      seeing(expected, orNothing: true)?.writing(value)
    case (.compareAndSet(let expected, _), .mismatch(let version)):
      version == expected ? nil : seeing(version, orNothing: true)
    case (.compareAndRemove(let expected), .removed(true)),
      (.compareAndRemove(let expected), .pending):
      value == 0 ? nil : seeing(expected)?.erased
    case (.compareAndRemove(let expected), .removed(false)):
      value != 0 && version == expected && !mayBeRewritten ? nil : self
    case (.take, .found(let value, _)): value == self.value ? erased : nil
    case (.take, .pending): erased
    case (.setLifetime, .extended(let wasThere)): wasThere == (value != 0) ? extended : nil
    case (.setLifetime, .pending): extended
    case (.passTime, .done): ending == .never ? self : erased
    default: nil
    }
  }

  private func writing(
    _ value: UInt64, _ version: UInt64, _ ending: HistoryOperation.Ending = .never
  ) -> KeyState? {
    if version <= highestVersion { return nil }
    var state = KeyState()
    state.highestVersion = version
    state = state.writing(value, ending)
    if state.value != 0 { state.version = version }
    return state
  }

  private func writing(
    _ value: UInt64, _ ending: HistoryOperation.Ending = .never
  ) -> KeyState {
    var state = self
    state.value = ending == .atOnce ? 0 : value
    state.version = 0
    state.ending = ending == .atOnce ? .never : ending
    state.mayBeRewritten = false
    return state
  }

  private var erased: KeyState { writing(0) }

  private var extended: KeyState {
    var state = self
    if ending == .soon { state.ending = .never }
    state.mayBeRewritten = value != 0
    return state
  }

  /// The state after a caller has seen that the value has this version; 0 if there is none or it is
  /// unknown.
  private func seeing(_ version: UInt64, orNothing: Bool = false) -> KeyState? {
    if version == 0 { return orNothing && value != 0 ? nil : self }
    if value == 0 { return nil }
    var state = self
    state.mayBeRewritten = false
    if self.version == version { return state }
    if self.version != 0, !mayBeRewritten { return nil }
    if version <= highestVersion { return nil }
    state.version = version
    state.highestVersion = version
    return state
  }
}
