/// A write's turn to append: the log is locked, and has room for the write's records. The turn ends
/// with the value.
struct WriteTurn: ~Copyable {
  private let log: LockHold<Appender>
  private let supply: Unretained<SegmentSupply>

  @inline(__always)
  init(_ log: consuming LockHold<Appender>, _ supply: SegmentSupply) {
    self.log = log
    self.supply = Unretained(supply)
  }

  /// The end of the log.
  var appender: Appender {
    @inline(__always) _read { yield log.state }
    @inline(__always) nonmutating _modify { yield &log.state }
  }

  /// Lets other writes continue, then schedules the work that this one has made due.
  @inline(__always)
  deinit {
    supply.withObject { supply in
      let chores = log.state.takeChores(prefaulting: supply.prefaults)
      supply.log.announce(&log.state)
      log.end()
      Reclamation.reclaimIfDue()
      if let chores { supply.run(chores) }
      supply.session.alarm.startTiming()
    }
  }
}
