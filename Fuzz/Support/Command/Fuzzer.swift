import CairnLibC

/// The command line that all fuzzers share.
///
///     [Fuzz] NAME [--seed S] [--iterations N] [--seconds T]
///
/// Iteration `i` depends only on the seed `S + i`. So the line printed with a failure reproduces
/// the failure, even if the process traps.
package struct Fuzzer {
  package var name: String
  package var seed: UInt64
  package var iterationCount: Int
  /// The time after which to stop, even if iterations remain.
  package var seconds: Double?
  /// Other arguments, for the fuzzer to interpret. Repeated in the replay line.
  package var arguments: [String] = []
  /// Whether the fuzzer is a command of `Fuzz` rather than a program.
  private let isPartOfFuzz: Bool
  private var givesSeed = false
  private var givesIterations = false

  /// Parses the command line. Ends the process with 2 if it is invalid.
  package init(name: String, iterations: Int, options: [String] = []) {
    self.name = name
    seed = UInt64.random(in: 0..<1 << 48)
    iterationCount = iterations
    var words = CommandLine.arguments.dropFirst()
    isPartOfFuzz = words.first == name
    if isPartOfFuzz { words.removeFirst() }
    func number<Number: LosslessStringConvertible>(after word: String) -> Number {
      guard let text = words.popFirst(), let number = Number(text) else {
        Self.end(with: 2, "\(name): \(word) needs a number")
      }
      return number
    }
    while let word = words.popFirst() {
      switch word {
      case "--seed":
        seed = number(after: word)
        givesSeed = true
      case "--iterations":
        iterationCount = number(after: word)
        givesIterations = true
      case "--seconds": seconds = number(after: word)
      case let option where options.contains(option): arguments.append(option)
      default:
        let others = options.map { " [\($0)]" }.joined()
        Self.end(
          with: 2,
          "\(name): what is \(word)?\n\(name) [--seed S] [--iterations N] [--seconds T]\(others)")
      }
    }
  }

  /// Runs numbered cases, `count` in total, instead of random ones: all of them, or as many as
  /// requested, starting at the seed.
  package mutating func enumerate(_ count: Int) {
    if !givesSeed { seed = 0 }
    let rest = count - Int(min(seed, UInt64(count)))
    iterationCount = givesIterations ? min(iterationCount, rest) : rest
  }

  /// Runs a sample of numbered cases, one from each of `count` equal parts: as many as requested,
  /// or one from every part.
  package mutating func sample(_ count: Int) {
    if !givesIterations { iterationCount = count }
  }

  /// The case that a seed chooses, from the part of the sample that belongs to the seed.
  package static func sampledCase(seed: UInt64, sampleCount: Int, caseCount: Int) -> Int {
    let part = Int(seed % UInt64(sampleCount))
    let first = part * caseCount / sampleCount
    var random = FuzzRandom(seed: seed)
    return first + random.below(max(1, (part + 1) * caseCount / sampleCount - first))
  }

  /// Runs all iterations, prints the counts, and ends the process: with 0, or with 1 at the first
  /// failure.
  ///
  /// - Parameter rare: what 200 iterations or more must have tried.
  package func run(trying rare: [String] = [], _ iteration: (UInt64) throws -> Tally) -> Never {
    guard iterationCount > 0, seconds ?? 1 > 0 else {
      Self.end(with: 2, "\(name): there is nothing to run: no iterations, or no time")
    }
    Replay.install()
    let limit = seconds.map { ", at most \($0) s" } ?? ""
    print("\(name): seed \(seed), \(iterationCount) iterations\(limit)")
    fflush(nil)
    let began = ContinuousClock.now
    var tally = Tally()
    var done = 0
    func elapsed() -> Double { began.duration(to: .now) / .seconds(1) }
    while done < iterationCount, elapsed() < seconds ?? .infinity {
      let seed = seed &+ UInt64(done)
      let line =
        ([
          "swift run -c release \(isPartOfFuzz ? "Fuzz " : "")\(name) --seed \(seed) --iterations 1"
        ] + arguments)
        .joined(separator: " ")
      Replay.set(line)
      do { tally.add(try iteration(seed)) } catch {
        print("\(name): FAILED in iteration \(done): \(error)")
        print("replay: \(line)")
        exit(1)
      }
      done += 1
    }
    let rounded = (elapsed() * 10).rounded() / 10
    print("\(name): \(done) iterations, \(tally), 0 failures in \(rounded) s")
    let untried = rare.filter { tally[$0] == 0 }
    if done >= 200, !untried.isEmpty {
      Self.end(with: 1, "\(name): FAILED: never tried: \(untried.joined(separator: ", "))")
    }
    exit(0)
  }

  package static func end(with status: Int32, _ message: String) -> Never {
    print(message)
    exit(status)
  }
}

/// The replay line of the running iteration, which is written out when a signal ends the process.
private enum Replay {
  // SAFETY: written between iterations by the one thread that runs them; read in the handler of a
  // signal that ends the process, by write(2) alone.
  nonisolated(unsafe) private static let line = UnsafeMutableBufferPointer<UInt8>.allocate(
    capacity: 1024)
  nonisolated(unsafe) private static var count = 0

  static func set(_ text: String) {
    let bytes = Array("replay: \(text)\n".utf8.prefix(1024))
    unsafe count = 0
    _ = unsafe line.update(from: bytes)
    unsafe count = bytes.count
  }

  static func install() {
    for number in [SIGILL, SIGTRAP, SIGSEGV, SIGBUS, SIGFPE, SIGABRT] {
      signal(number) { number in
        _ = unsafe write(1, Replay.line.baseAddress, Replay.count)
        signal(number, SIG_DFL)
        raise(number)
      }
    }
  }
}
