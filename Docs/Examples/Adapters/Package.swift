// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [.swiftLanguageMode(.v6)]

let cairn: Target.Dependency = .product(name: "Cairn", package: "Cairn")
let logging: Target.Dependency = .product(name: "Logging", package: "swift-log")
let metrics: Target.Dependency = .product(name: "Metrics", package: "swift-metrics")
let tracing: Target.Dependency = .product(name: "Tracing", package: "swift-distributed-tracing")
let lifecycle: Target.Dependency =
  .product(name: "ServiceLifecycle", package: "swift-service-lifecycle")
let configuration: Target.Dependency =
  .product(name: "Configuration", package: "swift-configuration")
let hummingbird: Target.Dependency = .product(name: "Hummingbird", package: "hummingbird")
let client: Target.Dependency =
  .product(name: "AsyncHTTPClient", package: "async-http-client")

/// A library target and its test target.
func adapter(
  _ name: String, _ dependencies: [Target.Dependency] = [], tests: [Target.Dependency] = []
) -> [Target] {
  [
    .target(name: name, dependencies: [cairn] + dependencies, swiftSettings: settings),
    .testTarget(
      name: name + "Tests",
      dependencies: [.target(name: name), cairn] + dependencies + tests, swiftSettings: settings),
  ]
}

let adapters: [[Target]] = [
  adapter("CairnLogging", [logging]),
  adapter(
    "CairnMetrics", [metrics, lifecycle],
    tests: [logging, .product(name: "MetricsTestKit", package: "swift-metrics")]),
  adapter(
    "CairnTracing", [tracing],
    tests: [.product(name: "InMemoryTracing", package: "swift-distributed-tracing")]),
  adapter("CairnLifecycle", [lifecycle], tests: [logging]),
  adapter("CairnSettings", [configuration]),
  adapter(
    "CairnHummingbird", [hummingbird, lifecycle],
    tests: [.product(name: "HummingbirdTesting", package: "hummingbird")]),
  adapter("HTTPCaching", [.product(name: "NIOHTTP1", package: "swift-nio")]),
  adapter(
    "CairnHTTPClient",
    [
      "HTTPCaching", client, .product(name: "NIOCore", package: "swift-nio"),
      .product(name: "NIOHTTP1", package: "swift-nio"),
    ],
    tests: [hummingbird, .product(name: "HummingbirdTesting", package: "hummingbird")]),
  adapter("StoreCopying"),
  adapter("CairnMoving", ["StoreCopying"]),
  adapter("CairnSharding", ["CairnMoving", "StoreCopying"]),
]

let package = Package(
  name: "Adapters",
  products: adapters.map { .library(name: $0[0].name, targets: [$0[0].name]) },
  dependencies: [
    // In your own program: .package(url: …, from: …).
    .package(name: "Cairn", path: "../../.."),
    .package(url: "https://github.com/apple/swift-log.git", from: "1.16.0"),
    .package(url: "https://github.com/apple/swift-metrics.git", from: "2.7.0"),
    .package(url: "https://github.com/apple/swift-distributed-tracing.git", from: "1.3.0"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle.git", from: "2.8.0"),
    .package(url: "https://github.com/apple/swift-configuration.git", from: "1.0.2"),
    .package(url: "https://github.com/apple/swift-nio.git", from: "2.100.0"),
    .package(url: "https://github.com/hummingbird-project/hummingbird.git", from: "2.28.0"),
    .package(url: "https://github.com/swift-server/async-http-client.git", from: "1.30.0"),
  ],
  targets: adapters.flatMap { $0 }
)
