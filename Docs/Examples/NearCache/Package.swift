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
    // In a program of your own: .package(url: …, from: …).
    .package(name: "Cairn", path: "../../..")
  ],
  targets: [
    // The C client of Redis and Valkey, as the system has it. Not by pkg-config: header and library are where compilers look,
    // and SwiftPM warns of a flag in Debian's hiredis.pc.
    .systemLibrary(name: "CHiredis"),
    // What a program of your own needs of this.
    .target(
      name: "NearCache",
      dependencies: ["CHiredis", .product(name: "Cairn", package: "Cairn")],
      swiftSettings: settings),
    // A server and a network that fail, readers and writers, and a model that checks them.
    .target(name: "NearCacheTrial", dependencies: ["NearCache"], swiftSettings: settings),
    // A demonstration, the benchmark, and the process that the tests start and kill.
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
