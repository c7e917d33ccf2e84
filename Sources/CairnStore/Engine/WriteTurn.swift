/// A write's turn to append: the log is locked, and has room for the write's records. The turn ends
/// with the value.
struct WriteTurn: ~Copyable {
  private let log: LockHold<Appender>
  private let supply: Unretained<SegmentSupply>
  /// The number of the next record when the turn began.
  private let first: SequenceNumber

  @inline(__always)
  init(_ log: consuming LockHold<Appender>, _ supply: SegmentSupply) {
    first = log.state.nextSequence
    self.log = log
    self.supply = Unretained(supply)
  }

  /// The end of the log.
  var appender: Appender {
    @inline(__always) _read { yield log.state }
    @inline(__always) nonmutating _modify { yield &log.state }
  }

  /// Lets other writes continue, then schedules the work that this one has made due. A refused write
  /// makes none due: in a poisoned store or on a full disk, there may be many.
  @inline(__always)
  deinit {
    supply.withObject { supply in
      let hasAppended = log.state.nextSequence != first
      let chores = hasAppended ? log.state.takeChores(prefaulting: supply.prefaults) : nil
      supply.log.announce(&log.state)
      log.end()
      Reclamation.reclaimIfDue()
      if let chores { supply.run(chores) }
      if hasAppended { supply.session.alarm.startTiming() }
    }
  }
}
