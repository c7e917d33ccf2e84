import CairnLibC
import FoundationEssentials

/// Answers the requests to a worker process.
protocol WorkerServing {
  static var storeName: String { get }
  func answer(_ request: WorkerRequest) throws -> RoundResult?
  /// Called when there are no more requests.
  func finish() throws
}

/// The hidden subcommand that a worker process runs.
enum WorkerMain {
  static let argument = "--worker"

  /// Answers requests from standard input on standard output until there are no more.
  static func run(_ json: String) -> Int32 {
    guard
      let configuration = try? JSONDecoder().decode(WorkerConfiguration.self, from: Data(json.utf8))
    else { return 2 }
    switch configuration.store {
    // Each store is named, so that the compiler specialises a worker for each.
    case .cairn, .cairnFirstRead, .cairnInterval:
      return serve(Worker<CairnStoreAdapter>(configuration))
    case .filePerKey: return serve(Worker<FilePerKeyStore>(configuration))
    case .bareMap: return serve(Worker<ReferenceStore>(configuration))
    case .bareMapSerial: return serve(Worker<SerialReferenceStore>(configuration))
    case .rawCopy: return serve(Worker<RawCopyStore>(configuration))
    case .rawWrite: return serve(Worker<RawWriteStore>(configuration))
    #if Peers
      case .lmdb, .lmdbInterval: return serve(Worker<LMDBStore>(configuration))
      case .sqlite: return serve(Worker<SQLiteStore>(configuration))
      case .yykv: return serve(Worker<YYKVStore>(configuration))
      case .rocksDB: return serve(Worker<RocksDBStore>(configuration))
    #else
      // No run uses a store that its build lacks.
      case .lmdb, .lmdbInterval, .sqlite, .yykv, .rocksDB: return 2
    #endif
    case .memoryCache: return serve(MemoryWorker<MemoryCachePeer>(configuration))
    case .dictionary: return serve(MemoryWorker<DictionaryPeer>(configuration))
    case .weakNodes: return serve(MemoryWorker<WeakNodeCache>(configuration))
    case .nsCache: return serve(MemoryWorker<NSCachePeer>(configuration))
    case .tieredCache: return serve(MemoryWorker<DiskCachePeer<WholeTier>>(configuration))
    case .tieredCacheFull:
      return serve(MemoryWorker<DiskCachePeer<WholeTierOfFullDisk>>(configuration))
    case .tieredCacheMissing: return serve(MemoryWorker<DiskCachePeer<TinyTier>>(configuration))
    case .diskCache: return serve(MemoryWorker<DiskCachePeer<NoTier>>(configuration))
    }
  }

  private static func serve<Worker: WorkerServing>(_ worker: Worker) -> Int32 {
    var requests = LineChannel(descriptor: STDIN_FILENO)
    let replies = LineChannel(descriptor: STDOUT_FILENO)
    do {
      while let request = try requests.receive(WorkerRequest.self) {
        var reply = WorkerReply()
        do {
          reply.round = try worker.answer(request)
        } catch {
          reply.failure = describe(error, store: Worker.storeName, request)
        }
        try replies.send(reply)
        if reply.failure != nil { return 1 }
      }
      try worker.finish()
      return 0
    } catch {
      return 1
    }
  }

  private static func describe(_ error: any Error, store: String, _ request: WorkerRequest)
    -> String
  {
    if case .mismatch? = error as? BenchFailure { return "\(error)" }
    if case .run(let workload, _, _) = request {
      return "store \(store), workload \(workload.rawValue): \(error)"
    }
    return "store \(store): \(error)"
  }
}
