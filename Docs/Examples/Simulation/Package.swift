// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [.swiftLanguageMode(.v6)]

let package = Package(
  name: "Simulation",
  targets: [
    // The effect of near caches on an engine, by formula and by simulation.
    .target(name: "NearCacheModel", swiftSettings: settings),
    .executableTarget(
      name: "simulate", dependencies: ["NearCacheModel"], path: "Sources/Simulate",
      swiftSettings: settings),
    .testTarget(
      name: "NearCacheModelTests", dependencies: ["NearCacheModel"], swiftSettings: settings),
  ]
)
