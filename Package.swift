// swift-tools-version: 6.2
import PackageDescription

/// Settings of every Swift target. No `unsafeFlags`: a package with those cannot be a dependency.
let settings: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .strictMemorySafety(),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("ExistentialAny"),
  // `@_lifetime`, which ties the span of a zero-copy read to what keeps its memory mapped.
  .enableExperimentalFeature("Lifetimes"),
]

let package = Package(
  name: "Cairn",
  platforms: [.macOS(.v26)],
  products: [
    .library(name: "Cairn", targets: ["Cairn"]),
    .library(name: "CairnStore", targets: ["CairnStore"]),
    .library(name: "CairnRepair", targets: ["CairnRepair"]),
    .executable(name: "cairn", targets: ["CairnTool"]),
    .executable(name: "cairn-bench", targets: ["CairnBench"]),
  ],
  traits: [
    // Off unless asked for: `swift run --traits Peers cairn-bench`.
    .trait(name: "Peers", description: "LMDB, SQLite and RocksDB beside Cairn in cairn-bench.")
  ],
  targets: [
    // What Glibc's module does not expose or Swift cannot express.
    .target(name: "CCairn"),
    // The C library of the system, under one name.
    .target(name: "CairnLibC", swiftSettings: settings),
    // The part of Foundation that the caches need.
    .target(name: "CairnEssentials", swiftSettings: settings),
    // The store: bytes in, bytes out. No Foundation.
    .target(name: "CairnStore", dependencies: ["CCairn", "CairnLibC"], swiftSettings: settings),
    // Verification and salvage of stores, which a server need not link.
    .target(name: "CairnRepair", dependencies: ["CairnStore"], swiftSettings: settings),
    // What `import Cairn` gives: the caches, and the store with its bridges to Foundation.
    .target(
      name: "Cairn", dependencies: ["CairnStore", "CCairn", "CairnLibC", "CairnEssentials"],
      swiftSettings: settings),
    // How the commands write text, numbers and progress.
    .target(
      name: "CommandText", dependencies: ["CairnStore", "CairnLibC"], swiftSettings: settings),
    .executableTarget(
      name: "CairnTool", dependencies: ["Cairn", "CairnRepair", "CommandText", "CairnLibC"],
      swiftSettings: settings),
    .executableTarget(
      name: "CairnBench",
      dependencies: [
        "Cairn", "CCairn", "CommandText", "CairnLibC",
        .target(name: "CLMDB", condition: .when(traits: ["Peers"])),
        .target(name: "CSQLite3", condition: .when(traits: ["Peers"])),
        .target(name: "CRocksDB", condition: .when(traits: ["Peers"])),
      ],
      swiftSettings: settings),
    // The peers' libraries, as the system has them.
    .systemLibrary(
      name: "CLMDB", path: "Sources/Peers/CLMDB", pkgConfig: "lmdb",
      providers: [.apt(["liblmdb-dev"])]),
    .systemLibrary(
      name: "CSQLite3", path: "Sources/Peers/CSQLite3", pkgConfig: "sqlite3",
      providers: [.apt(["libsqlite3-dev"])]),
    .systemLibrary(
      name: "CRocksDB", path: "Sources/Peers/CRocksDB", pkgConfig: "rocksdb",
      providers: [.apt(["librocksdb-dev"])]),
    // What the tests run as a process of its own: to kill it, to fork it, to limit it.
    .executableTarget(
      name: "KillWriter",
      dependencies: ["CairnStore", "CairnRepair", "Cairn", "FuzzSupport", "CairnLibC"],
      path: "Fuzz/KillWriter", swiftSettings: settings),
    // What the fuzzers share: a simulated disk, a model of the store, the shape of their commands.
    .target(
      name: "FuzzSupport",
      dependencies: ["CairnStore", "CairnRepair", "Cairn", "CairnLibC", "CairnEssentials"],
      path: "Fuzz/Support", swiftSettings: settings),
    .executableTarget(
      name: "Fuzz", dependencies: ["FuzzSupport"], path: "Fuzz/Program", swiftSettings: settings),
    // Threads that use a store at once, and are killed: are their answers explained by an order?
    .executableTarget(
      name: "HistoryFuzzer", dependencies: ["FuzzSupport", "Cairn", "CairnRepair"],
      path: "Fuzz/HistoryFuzzer", swiftSettings: settings),
    // Full disks, limits and locks that are real: mounted, set, and held by other processes.
    .executableTarget(
      name: "RealFaultFuzzer",
      dependencies: ["FuzzSupport", "CairnStore", "CairnRepair", "CairnLibC"],
      path: "Fuzz/RealFaultFuzzer", swiftSettings: settings),
    // A store under churn on the real disk, with kills in between.
    .executableTarget(
      name: "ChurnRun", dependencies: ["FuzzSupport", "CairnStore", "CairnRepair", "CairnLibC"],
      path: "Fuzz/ChurnRun", swiftSettings: settings),
    // Entries for libFuzzer, which Fuzz/run-libfuzzer links in; without it they replay inputs.
    .target(name: "LibFuzzerDriver", path: "Fuzz/LibFuzzerDriver"),
    .executableTarget(
      name: "LibFuzzer", dependencies: ["FuzzSupport", "LibFuzzerDriver", "CairnLibC"],
      path: "Fuzz/LibFuzzer",
      swiftSettings: settings),
    .testTarget(
      name: "CairnStoreTests",
      dependencies: [
        "CairnStore", "CairnRepair", "FuzzSupport", "KillWriter", "CairnLibC", "CairnEssentials",
      ],
      exclude: ["Format/GoldenStores"], swiftSettings: settings),
    .testTarget(
      name: "CairnTests",
      dependencies: [
        "Cairn", "CairnRepair", "FuzzSupport", "KillWriter", "CairnLibC", "CairnEssentials",
      ],
      exclude: ["Disk/GoldenCaches"],
      swiftSettings: settings),
    .testTarget(
      name: "CairnBenchTests", dependencies: ["CairnBench", "CairnLibC", "CairnEssentials"],
      swiftSettings: settings),
    .testTarget(
      name: "FuzzSupportTests", dependencies: ["FuzzSupport", "CairnStore", "CairnRepair"],
      swiftSettings: settings),
    .testTarget(name: "RepositoryTests", swiftSettings: settings),
    // The samples of the README and of the articles, run. They see what a program that depends on the package sees.
    .testTarget(
      name: "DocumentationTests", dependencies: ["Cairn", "CairnRepair"], packageAccess: false,
      swiftSettings: settings),
    .testTarget(
      name: "CairnToolTests",
      dependencies: [
        "CairnTool", "CommandText", "Cairn", "FuzzSupport", "CairnLibC", "CairnEssentials",
      ],
      swiftSettings: settings),
  ]
)

#if !os(Linux)
  // The benchmark reads /proc.
  package.products.removeAll { $0.name == "cairn-bench" }
  package.targets.removeAll { ["CairnBench", "CairnBenchTests"].contains($0.name) }
#endif
