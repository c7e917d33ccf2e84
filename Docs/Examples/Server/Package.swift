// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [.swiftLanguageMode(.v6)]

let package = Package(
  name: "Server",
  dependencies: [
    // In a program of your own: .package(url: …, from: …).
    .package(name: "Cairn", path: "../../.."),
    .package(url: "https://github.com/hummingbird-project/hummingbird.git", from: "2.28.0"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle.git", from: "2.0.0"),
    .package(url: "https://github.com/apple/swift-log.git", from: "1.16.0"),
    .package(url: "https://github.com/swift-server/async-http-client.git", from: "1.30.0"),
  ],
  targets: [
    // What a program of your own needs of this: a driver, and a cache of responses.
    .target(
      name: "CairnPersist",
      dependencies: [
        .product(name: "Cairn", package: "Cairn"),
        .product(name: "Hummingbird", package: "hummingbird"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
      ],
      swiftSettings: settings),
    // A server that uses them, and what stands in its pages.
    .target(name: "PageText", swiftSettings: settings),
    .executableTarget(
      name: "Server",
      dependencies: [
        "CairnPersist", "PageText",
        .product(name: "Cairn", package: "Cairn"),
        .product(name: "Hummingbird", package: "hummingbird"),
        .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: settings),
    // What ./run starts: kills and restarts the server under load, and checks its answers.
    .executableTarget(
      name: "ServerCheck",
      dependencies: [
        "PageText",
        .product(name: "Cairn", package: "Cairn"),
        .product(name: "AsyncHTTPClient", package: "async-http-client"),
      ],
      swiftSettings: settings),
    .testTarget(
      name: "CairnPersistTests",
      dependencies: [
        "CairnPersist",
        .product(name: "Cairn", package: "Cairn"),
        .product(name: "Hummingbird", package: "hummingbird"),
        .product(name: "HummingbirdTesting", package: "hummingbird"),
        .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: settings),
  ]
)
