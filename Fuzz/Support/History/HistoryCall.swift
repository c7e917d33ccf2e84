/// One call of one thread, for one key or for several.
package struct HistoryCall: Sendable {
  /// The guarantee for the operations of one call.
  package enum Unity: UInt64, Sendable {
    /// No guarantee: each takes effect at its own moment.
    case apart
    /// Readers may see them arrive one after another, but nothing else changes meanwhile. If the
    /// process dies, all of them have happened, or none. This is the guarantee of a batch, or a
    /// removal of all.
    case together
    /// They take effect at one moment, and no batch is partly applied then: a snapshot.
    case atOnce
    /// Others may change something while they arrive, but if the process dies, all of them have
    /// happened or none. This is the guarantee of a large batch, which no snapshot shows partly.
    case arriving
  }

  package var unity: Unity
  /// At least one. Each operation has the times and the thread of the call.
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
