import Cairn
import Foundation
import NearCache
import NearCacheTrial
import Testing

/// A server, and machines that each have a separate network to it.
final class Cluster {
  let server: RedisServer
  let directory: String
  private(set) var networks: [FaultyNetwork] = []
  private(set) var machines: [NearCache<String, String>] = []

  init(isLogged: Bool = true) async throws {
    directory = NSTemporaryDirectory() + "/near-cache-\(UUID().uuidString)"
    server = try RedisServer(directory: directory + "/server", isLogged: isLogged)
    try await server.start()
  }

  /// Adds a machine and waits until it receives invalidations.
  @discardableResult
  func addMachine(
    _ change: (inout NearCacheConfiguration) -> Void = { _ in }
  ) async throws -> NearCache<String, String> {
    let network = try FaultyNetwork(to: server.port)
    networks.append(network)
    var configuration = Workload.configuration(EngineEndpoint(port: network.port))
    change(&configuration)
    let machine = try await NearCache<String, String>.open(
      at: "\(directory)/\(machines.count).cairn", configuration, coder: .string)
    machines.append(machine)
    try await eventually("invalidations come") { machine.invalidationOutage == nil }
    return machine
  }

  func end() async throws {
    for machine in machines { try await machine.close() }
    for network in networks { network.close() }
    server.kill()
    try FileManager.default.removeItem(atPath: directory)
  }
}

/// Calls `body` with a cluster, then ends the cluster's server and machines.
func withCluster(
  machines count: Int = 0, isLogged: Bool = true, _ body: (Cluster) async throws -> Void
) async throws {
  let cluster = try await Cluster(isLogged: isLogged)
  do {
    for _ in 0..<count { try await cluster.addMachine() }
    try await body(cluster)
  } catch {
    try? await cluster.end()
    throw error
  }
  try await cluster.end()
}

/// Waits for a condition that another process or thread brings about.
func eventually(
  _ what: String, within limit: Duration = .seconds(20), _ holds: () async throws -> Bool
) async throws {
  let end = ContinuousClock.now + limit
  while try await !holds() {
    if .now > end { throw TrialFailure("not within \(limit): \(what)") }
    try await Task.sleep(for: .milliseconds(2))
  }
}

/// Reads a key until it has a near copy. One read may not suffice, because the invalidation of an
/// earlier write may arrive meanwhile.
func haveNear(_ key: String, _ machine: NearCache<String, String>) async throws {
  try await eventually("\(key) is near") {
    try await machine.answer(forKey: key)?.source == .near
  }
}

/// The `EngineError` that a call throws.
func engineError(_ body: () async throws -> Void) async throws -> EngineError {
  do { try await body() } catch let error as EngineError { return error }
  throw TrialFailure("no EngineError was thrown")
}

/// An origin that counts requests.
actor CountingOrigin {
  private(set) var count = 0
  private var gates: [CheckedContinuation<Void, Never>] = []
  private var isOpen = true

  func close() { isOpen = false }

  func open() {
    isOpen = true
    for gate in gates { gate.resume() }
    gates = []
  }

  func make(_ text: String) async -> String {
    count += 1
    if !isOpen { await withCheckedContinuation { gates.append($0) } }
    return text
  }
}
