import Foundation

/// Runs a sample in its own directory, which is removed afterwards. Meanwhile, it is the current
/// directory, and that of all caches.
///
/// Both are settings of the whole process. So this is only for a process that does nothing else:
/// that of an exit test.
func inNewDirectory(_ sample: () async throws -> Void) async throws {
  let directory = NSTemporaryDirectory() + "/cairn-sample-tests.\(UUID().uuidString)"
  try FileManager.default.createDirectory(
    atPath: directory, withIntermediateDirectories: false)
  guard FileManager.default.changeCurrentDirectoryPath(directory) else {
    throw CocoaError(.fileNoSuchFile)
  }
  unsafe setenv("XDG_CACHE_HOME", directory + "/caches", 1)
  var failure: (any Error)?
  do { try await sample() } catch { failure = error }
  // A store whose last reference another thread released may still be closing and writing there.
  for _ in 0..<200 where FileManager.default.fileExists(atPath: directory) {
    try? FileManager.default.removeItem(atPath: directory)
    try await Task.sleep(for: .milliseconds(10))
  }
  if let failure { throw failure }
}

/// The origin of the samples' pages: the slow source behind the cache.
actor Origin {
  static let shared = Origin()

  private(set) var requestCount = 0
  private var bodies: [String: String] = [:]

  func page(_ url: String) -> Page {
    requestCount += 1
    return Page(title: url, body: bodies[url] ?? "first")
  }

  func publish(_ page: Page, _ url: String) { bodies[url] = page.body }
}

func fetch(_ url: String) async throws -> Page {
  try await Task.sleep(for: .milliseconds(5))
  return await Origin.shared.page(url)
}

func fetchWithAge(_ url: String) async throws -> (Page, Duration) {
  (try await fetch(url), .seconds(30))
}

/// The page, and the tag of its version.
func fetchWithETag(_ url: String) async throws -> (Page, [UInt8]) {
  (try await fetch(url), Array("v1".utf8))
}

/// What an origin returns when it is asked whether a page has changed.
enum Answer {
  case notModified
  case page(Page, etag: [UInt8])
  case gone
}

func fetch(_ url: String, ifNoneMatch etag: [UInt8]?) async throws -> Answer {
  if url == "/none" { return .gone }
  if etag == Array("v1".utf8) { return .notModified }
  return .page(try await fetch(url), etag: Array("v1".utf8))
}

/// The page, if there is one.
func fetchIfThere(_ url: String) async throws -> Page? {
  url == "/none" ? nil : try await fetch(url)
}

func publish(_ page: Page, _ url: String) async throws {
  await Origin.shared.publish(page, url)
}

/// The pages that exist of those requested.
func fetchAll(_ urls: [String]) async throws -> [String: Page] {
  ["/b": try await fetch("/b")].filter { urls.contains($0.key) }
}
