// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "PageCache",
  dependencies: [
    // In your own program: .package(url: …, from: …).
    .package(name: "Cairn", path: "../../..")
  ],
  targets: [
    .executableTarget(
      name: "PageCache", dependencies: [.product(name: "Cairn", package: "Cairn")],
      swiftSettings: [.swiftLanguageMode(.v6)])
  ]
)
