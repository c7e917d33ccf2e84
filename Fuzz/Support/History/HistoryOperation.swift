/// What one call did to one key, with what it answered and when: an operation of a history.
package struct HistoryOperation: Sendable, CustomStringConvertible {
  /// Values are numbers from 1 on; versions are those of the store, where 0 stands for none or for one that is
  /// not known.
  package enum Action: Sendable, Hashable {
    case write(value: UInt64, ending: Ending = .never)
    /// A removal that does not say whether there was something: of all keys, or in a batch.
    case erase
    case remove
    case read
    case compareAndSet(expecting: UInt64, value: UInt64)
    case compareAndRemove(expecting: UInt64)
    /// A removal that hands the value out.
    case take
    /// Has what is there live on when time passes, if it has a lifetime.
    case extend
    /// What ends by then is gone.
    case passTime
  }

  /// When what is written goes by itself. The clock stands still while threads are at work, so that this is known.
  package enum Ending: UInt64, Sendable {
    /// Not in the course of a run.
    case never
    /// When time passes, by its lifetime.
    case soon
    /// When time passes, by its idle limit, which nothing extends.
    case whenIdle
    /// It is over when it is written.
    case atOnce
  }

  package enum Outcome: Sendable, Hashable {
    /// It had not returned when the process died: it may have happened or not.
    case pending
    case done
    /// It was written under this version.
    case stored(version: UInt64)
    /// Whether there was something to remove.
    case removed(Bool)
    /// Whether there was something to extend.
    case extended(Bool)
    /// What a read found, or who took it; 0: nothing.
    case found(value: UInt64, version: UInt64)
    /// What a compare-and-set found instead of what it expected; 0: nothing.
    case mismatch(version: UInt64)
  }

  package var action: Action
  package var outcome: Outcome
  /// Times of one clock: the call took effect between them.
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

  /// Whether it surely changed nothing.
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

/// What one key holds, as far as a history tells.
package struct KeyState: Hashable, Sendable {
  /// 0: nothing.
  package var value: UInt64 = 0
  /// 0: not known.
  package var version: UInt64 = 0
  /// The highest version that was seen: later writes have higher ones.
  package var highestVersion: UInt64 = 0
  /// Of the value; never `atOnce`.
  package var ending = HistoryOperation.Ending.never

  package init() {}

  package init(value: UInt64, version: UInt64) {
    self.value = value
    self.version = version
    highestVersion = version
  }

  /// The state after an operation; `nil` where it could not have answered as it did.
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
      value != 0 && version == expected ? nil : self
    case (.take, .found(let value, _)): value == self.value ? erased : nil
    case (.take, .pending): erased
    case (.extend, .extended(let wasThere)): wasThere == (value != 0) ? extended : nil
    case (.extend, .pending): extended
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
    return state
  }

  private var erased: KeyState { writing(0) }

  private var extended: KeyState {
    var state = self
    if ending == .soon { state.ending = .never }
    return state
  }

  /// The state when somebody saw that its value has this version; 0 for nothing, or for one that was not told.
  private func seeing(_ version: UInt64, orNothing: Bool = false) -> KeyState? {
    if version == 0 { return orNothing && value != 0 ? nil : self }
    if value == 0 { return nil }
    if self.version != 0 { return self.version == version ? self : nil }
    if version <= highestVersion { return nil }
    var state = self
    state.version = version
    state.highestVersion = version
    return state
  }
}
