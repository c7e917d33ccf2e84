// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [.swiftLanguageMode(.v6)]

let package = Package(
  name: "Server",
  dependencies: [
    // In your own program: .package(url: …, from: …).
    .package(name: "Cairn", path: "../../.."),
    .package(name: "Adapters", path: "../Adapters"),
    .package(url: "https://github.com/hummingbird-project/hummingbird.git", from: "2.28.0"),
    .package(url: "https://github.com/apple/swift-log.git", from: "1.16.0"),
    .package(url: "https://github.com/swift-server/async-http-client.git", from: "1.30.0"),
  ],
  targets: [
    // The text of the pages, shared by the server and its check.
    .target(name: "PageText", swiftSettings: settings),
    .executableTarget(
      name: "Server",
      dependencies: [
        "PageText",
        .product(name: "CairnHummingbird", package: "Adapters"),
        .product(name: "CairnLogging", package: "Adapters"),
        .product(name: "Cairn", package: "Cairn"),
        .product(name: "Hummingbird", package: "hummingbird"),
        .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: settings),
    // Started by ./run: kills and restarts the server under load, and checks its answers.
    .executableTarget(
      name: "ServerCheck",
      dependencies: [
        "PageText",
        .product(name: "Cairn", package: "Cairn"),
        .product(name: "CairnRepair", package: "Cairn"),
        .product(name: "AsyncHTTPClient", package: "async-http-client"),
      ],
      swiftSettings: settings),
    .testTarget(
      name: "ServerTests",
      dependencies: [
        "PageText", "Server",
        .product(name: "CairnHummingbird", package: "Adapters"),
        .product(name: "Hummingbird", package: "hummingbird"),
        .product(name: "HummingbirdTesting", package: "hummingbird"),
      ],
      swiftSettings: settings),
  ]
)
