import Foundation
import PageText
import Synchronization

/// Reads pages, and checks that each is complete, no older than its lifetime, and computed once in
/// that time.
final class PageCheck: Sendable {
  let client: Client
  let findings: Findings
  let lifetime: Duration
  /// The last versions of each page, by its number.
  private let seen = Mutex<[Int: [PageText]]>([:])
  private let reads = Atomic(0)
  private let rushes = Atomic(0)

  init(client: Client, findings: Findings, lifetime: Duration) {
    (self.client, self.findings, self.lifetime) = (client, findings, lifetime)
  }

  var readCount: Int { reads.load(ordering: .relaxed) }
  /// The number of bursts of requests for a new page.
  var rushCount: Int { rushes.load(ordering: .relaxed) }
  static let rushSize = 100

  /// Reads pages that other tasks also read.
  func run() async throws {
    while !Task.isCancelled {
      await read(Int.random(in: 0..<1000))
      try? await Task.sleep(for: .milliseconds(2))
    }
  }

  /// Sends bursts of simultaneous requests for a page that was never requested before.
  func runRushes() async throws {
    var number = 1_000_000
    while !Task.isCancelled {
      number += 1
      await withTaskGroup(of: Void.self) { [number] group in
        for _ in 0..<Self.rushSize { group.addTask { await self.read(number) } }
      }
      rushes.add(1, ordering: .relaxed)
      try? await Task.sleep(for: .milliseconds(500))
    }
  }

  private func read(_ number: Int) async {
    let asked = Self.now()
    guard let answer = await client.ask(.get, "/pages/\(number)") else { return }
    guard answer.status == 200, let page = PageText(firstLineOf: answer.body),
      page.number == number, page.text.utf8.elementsEqual(answer.body.utf8)
    else {
      findings.add("page \(number): \(answer.status) \(answer.body.prefix(100))")
      return
    }
    let milliseconds = lifetime.components.seconds * 1000
    findings.expect(
      asked - page.made <= milliseconds + 2000,
      "page \(number) was \(asked - page.made) ms old")
    let other = seen.withLock { seen in
      var pages = seen[number, default: []]
      if pages.contains(page) { return nil as PageText? }
      let other = pages.first { abs($0.made - page.made) < milliseconds }
      pages.append(page)
      seen[number] = pages.suffix(3)
      return other
    }
    if let other {
      findings.add(
        "page \(number) was computed twice in its lifetime, at \(other.made) by \(other.process) and at "
          + "\(page.made) by \(page.process)")
    }
    reads.add(1, ordering: .relaxed)
  }

  private static func now() -> Int64 { Int64(Date().timeIntervalSince1970 * 1000) }
}
