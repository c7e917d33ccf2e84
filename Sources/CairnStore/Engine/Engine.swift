/// An open store: its parts, and the writes that go through several of them. `Store` is the public
/// API.
///
/// Each part owns a lock and the state that it guards. `Docs/Architecture.md` gives the lock order,
/// which follows from the references between the parts.
@usableFromInline
package final class Engine: Sendable {
  let session: Session
  let limits: WriteLimits
  @usableFromInline let reader: Reader
  let writer: Writer
  let committer: Committer
  let evictor: Evictor
  let segmentEvictor: SegmentEvictor?
  @usableFromInline let trimmer: Trimmer
  let totalRemoval: TotalRemoval
  let scrubber: Scrubber
  let housekeeper: Housekeeper

  init(_ parts: OpenedStore, configuration: StoreConfiguration, environment: Environment) {
    session = Session(parts, configuration, environment)
    limits = session.limits
    let lookup = Lookup(session, parts)
    let log = LogWriter(session, parts)
    let catalog = Catalog(session, log, parts)
    let progress = CheckpointProgress(parts, configuration)
    let expiry = Expiry(lookup, log)
    let compactor = Compactor(
      lookup, SegmentSupply(session, catalog, progress),
      Checkpointer(catalog, expiry, parts.index, progress, parts.recovery), BackPressure(log))
    writer = Writer(compactor)
    committer = Committer(session, log)
    let remover = Remover(writer, committer)
    evictor = Evictor(remover)
    segmentEvictor = configuration.isOfCache ? SegmentEvictor(remover) : nil
    reader = Reader(lookup, log)
    trimmer = Trimmer(remover, reader, expiry)
    totalRemoval = TotalRemoval(remover, evictor)
    scrubber = Scrubber(lookup, log)
    housekeeper = Housekeeper(compactor, trimmer, scrubber)
    evictor.prepare(startingWith: parts.oldest, parts.recovery)
    segmentEvictor?.start()
    housekeeper.start()
  }

  package var lookup: Lookup { writer.lookup }
  package var log: LogWriter { writer.log }
  var catalog: Catalog { writer.supply.catalog }
  var compactor: Compactor { writer.compactor }
  var checkpointer: Checkpointer { writer.compactor.checkpointer }
}
