// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [.swiftLanguageMode(.v6)]

let nio: [Target.Dependency] = ["NIOCore", "NIOHTTP1", "NIOPosix"].map {
  .product(name: $0, package: "swift-nio")
}

let package = Package(
  name: "Workers",
  dependencies: [
    // In your own program: .package(url: …, from: …).
    .package(name: "Cairn", path: "../../.."),
    .package(url: "https://github.com/apple/swift-nio.git", from: "2.80.0"),
  ],
  targets: [
    .executableTarget(
      name: "workers", dependencies: [.product(name: "Cairn", package: "Cairn")] + nio,
      path: "Sources/Workers", swiftSettings: settings),
    // The tests start the program and kill its processes.
    .testTarget(name: "WorkersTests", dependencies: ["workers"] + nio, swiftSettings: settings),
  ]
)
