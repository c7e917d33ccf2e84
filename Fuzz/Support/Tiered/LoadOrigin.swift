import Cairn
import CairnStore

/// The origin of loads: each load waits until it is told what to return.
final class LoadOrigin: Sendable {
  struct Failure: Error {}

  /// Exists until a call, and the loads that it began, have ended.
  final class Mark: Sendable {}

  /// The mark of the current call or load.
  @TaskLocal static var mark: Mark?

  enum Reply {
    case loaded(String, Lifetime)
    case notModified(Lifetime)
    case absent(Duration)
    case failure
  }

  struct Call: Sendable {
    let key: Int
    let prior: PriorValue<String>?
    weak var mark = LoadOrigin.mark
    fileprivate let continuation: CheckedContinuation<Reply, Never>

    func reply(_ reply: Reply) { continuation.resume(returning: reply) }
  }

  private let calls = Lock<[Call]>([])

  /// The number of loads still waiting for a reply.
  var count: Int { calls.withLock { $0.count } }

  func take() -> Call? { calls.withLock { $0.isEmpty ? nil : $0.removeFirst() } }

  func load(_ key: Int, _ prior: PriorValue<String>?) async throws -> LoadResult<String> {
    let reply = await withCheckedContinuation { continuation in
      calls.withLock { $0.append(Call(key: key, prior: prior, continuation: continuation)) }
    }
    switch reply {
    case .loaded(let value, let lifetime):
      return .loaded(value, options: .lifetime(lifetime))
    case .notModified(let lifetime):
      guard let prior else { throw Failure() }
      return prior.notModified(lifetime: lifetime)
    case .absent(let duration): return .absent(for: duration)
    case .failure: throw Failure()
    }
  }
}
