// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [.swiftLanguageMode(.v6), .strictMemorySafety()]

let package = Package(
  name: "NearCache",
  products: [
    .library(name: "NearCache", targets: ["NearCache"]),
    .executable(name: "near-cache", targets: ["NearCacheProgram"]),
  ],
  dependencies: [
    // In your own program: .package(url: …, from: …).
    .package(name: "Cairn", path: "../../..")
  ],
  targets: [
    // The system's C client for Redis and Valkey. Does not use pkg-config: compilers find the
    // header and library anyway, and SwiftPM warns about a flag in Debian's hiredis.pc.
    .systemLibrary(name: "CHiredis"),
    // The library for your own program.
    .target(
      name: "NearCache",
      dependencies: ["CHiredis", .product(name: "Cairn", package: "Cairn")],
      swiftSettings: settings),
    // A failing server and network, readers and writers, and a model that checks them.
    .target(name: "NearCacheTrial", dependencies: ["NearCache"], swiftSettings: settings),
    // A demonstration, the benchmark, and the worker process that the tests start and kill.
    .executableTarget(
      name: "NearCacheProgram",
      dependencies: [
        "NearCache", "NearCacheTrial", .product(name: "Cairn", package: "Cairn"),
      ],
      swiftSettings: settings),
    .testTarget(
      name: "NearCacheTests",
      dependencies: [
        "NearCache", "NearCacheTrial", "NearCacheProgram",
        .product(name: "Cairn", package: "Cairn"),
      ],
      swiftSettings: settings),
  ]
)
