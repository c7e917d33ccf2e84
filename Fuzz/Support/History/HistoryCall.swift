/// One call that one thread made, for one key or for several.
package struct HistoryCall: Sendable {
  /// What is promised of the operations of one call.
  package enum Unity: UInt64, Sendable {
    /// Nothing: each takes effect at a moment of its own.
    case apart
    /// Readers may see them arrive one after the other, but nothing else changes meanwhile, and when the process
    /// dies all of them have happened or none: a batch, or a removal of all.
    case together
    /// They take effect at one moment, and no batch is half there by then: a snapshot.
    case atOnce
    /// Others may change something while they arrive, but when the process dies all of them have happened or none:
    /// a large batch, which no snapshot shows half there.
    case arriving
  }

  package var unity: Unity
  /// At least one; those of one call have its times and its thread.
  package var operations: [HistoryOperation]

  package init(_ unity: Unity, _ operations: [HistoryOperation]) {
    self.unity = unity
    self.operations = operations
  }

  var begin: UInt64 { operations[0].begin }
  var end: UInt64 { operations[0].end }
  var thread: Int { operations[0].thread }
  var isPending: Bool { operations[0].isPending }
  var onlyLooks: Bool { operations.allSatisfy(\.onlyLooked) }
}
