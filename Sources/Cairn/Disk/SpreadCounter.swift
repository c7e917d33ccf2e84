/// A counter that many threads increment at the same time, mostly in different words. So reads on
/// different threads rarely write to the same word.
struct SpreadCounter: ~Copyable, Sendable {
  private struct Part: ~Copyable, Sendable {
    private let count = Counter()
    /// Processors fetch 64-byte cache lines in pairs.
    private let apart = InlineArray<15, UInt64>(repeating: 0)

    func load() -> UInt64 { count.load() }
    func add() { count.add() }
  }

  private let parts: InlineArray<16, Part>

  init() { parts = InlineArray { _ in Part() } }

  var value: UInt64 { counts.reduce(0, &+) }

  /// The count of each part.
  var counts: [UInt64] { parts.indices.map { parts[$0].load() } }

  func add() { parts[ThreadID.current.slot].add() }
}
