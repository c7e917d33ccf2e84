import Cairn
import CairnSettings
import Configuration
import Foundation
import Testing

@Suite("Settings of caches and stores")
final class SettingsTests {
  private func environment(_ variables: [String: String]) -> ConfigReader {
    ConfigReader(provider: EnvironmentVariablesProvider(environmentVariables: variables))
  }

  @Test("Every setting is read from the environment")
  func everySetting() throws {
    let settings = try CacheSettings(
      environment([
        "PAGES_PATH": "/var/cache/pages", "PAGES_COUNT_LIMIT": "100000",
        "PAGES_BYTE_LIMIT": "1GiB", "PAGES_DISK_BYTE_LIMIT": "2GiB",
        "PAGES_FREE_DISK_SPACE_FLOOR": "512MiB", "PAGES_LIFETIME": "12h",
        "PAGES_IDLE_LIMIT": "7d", "PAGES_DURABILITY": "250ms",
        "PAGES_MEMORY_COUNT_LIMIT": "1000", "PAGES_MEMORY_COST_LIMIT": "64KiB",
        "PAGES_LOADS_STALE_ON_ERROR": "10m", "PAGES_LOADS_STALE_WHILE_REVALIDATING": "30s",
        "PAGES_LOADS_TIME_LIMIT": "1500ms",
      ]), section: "pages")
    let configuration = settings.configuration
    #expect(settings.path == "/var/cache/pages")
    #expect(configuration.countLimit == 100_000)
    #expect(configuration.byteLimit == 1 << 30)
    #expect(configuration.diskByteLimit == 2 << 30)
    #expect(configuration.store.freeDiskSpaceFloor == 512 << 20)
    #expect(configuration.lifetime == .hours(12))
    #expect(configuration.idleLimit == .seconds(7 * 86_400))
    #expect(configuration.store.durability == .interval(.milliseconds(250)))
    #expect(configuration.memory?.countLimit == 1000)
    #expect(configuration.memory?.costLimit == 64 << 10)
    #expect(configuration.loadPolicy.staleOnError == .seconds(600))
    #expect(configuration.loadPolicy.staleWhileRevalidating == .seconds(30))
    #expect(configuration.loadPolicy.timeLimit == .milliseconds(1500))
  }

  @Test("A file may have numbers and text, the environment wins, and other values are unchanged")
  func file() async throws {
    let path = NSTemporaryDirectory() + "/settings-\(UUID().uuidString).json"
    defer { try? FileManager.default.removeItem(atPath: path) }
    try
      #"{"pages": {"path": "/a", "countLimit": 5000, "byteLimit": "2MiB", "durability": "durable"}}"#
      .write(toFile: path, atomically: true, encoding: .utf8)
    let reader = ConfigReader(providers: [
      EnvironmentVariablesProvider(environmentVariables: ["PAGES_PATH": "/b"]),
      try await FileProvider<JSONSnapshot>(filePath: .init(path)),
    ])
    var base = DiskCacheConfiguration(countLimit: 1)
    base.lifetime = .seconds(60)
    let settings = try CacheSettings(reader, section: "pages", base: base)
    #expect(settings.path == "/b")
    #expect(settings.configuration.countLimit == 5000)
    #expect(settings.configuration.byteLimit == 2 << 20)
    #expect(settings.configuration.lifetime == .seconds(60))
    #expect(settings.configuration.store.durability == .durable)
    #expect(settings.configuration.memory == nil)
    let store = try StoreSettings(reader, section: "pages")
    #expect(store.path == "/b")
    #expect(store.configuration.countLimit == 5000)
  }

  @Test(
    "An invalid value causes an error that names the key",
    arguments: [
      ("BYTE_LIMIT", "byteLimit", "1GB"), ("BYTE_LIMIT", "byteLimit", "-5"),
      ("BYTE_LIMIT", "byteLimit", "9999999TiB"), ("BYTE_LIMIT", "byteLimit", ""),
      ("COUNT_LIMIT", "countLimit", "many"), ("COUNT_LIMIT", "countLimit", "-1"),
      ("LIFETIME", "lifetime", "30"), ("LIFETIME", "lifetime", "-3s"),
      ("LIFETIME", "lifetime", "s"), ("DURABILITY", "durability", "safe"),
      ("DURABILITY", "durability", "0s"),
      ("MEMORY_COST_LIMIT", "memory.costLimit", "1.5GiB"),
      ("LOADS_TIME_LIMIT", "loads.timeLimit", "10 s"),
    ])
  func errors(variable: String, key: String, value: String) {
    var variables = ["PAGES_PATH": "/a", "PAGES_COUNT_LIMIT": "5"]
    variables["PAGES_\(variable)"] = value
    let reader = environment(variables)
    let error = #expect(throws: SettingError.self) {
      try CacheSettings(reader, section: "pages")
    }
    #expect(error?.key == "pages.\(key)")
    #expect(error?.value == value)
    #expect(error?.description.hasPrefix("pages.\(key): “\(value)” must be ") == true)
  }

  @Test("A path and a limit must be set")
  func missing() {
    let noPath = #expect(throws: SettingError.self) {
      try CacheSettings(environment(["PAGES_COUNT_LIMIT": "5"]), section: "pages")
    }
    #expect(noPath?.description == "pages.path: must be set")
    let error = #expect(throws: SettingError.self) {
      try CacheSettings(environment(["PAGES_PATH": "/a"]), section: "pages")
    }
    #expect(error?.key == "pages.byteLimit")
  }

  @Test("A value in a file that is neither an integer nor text is an error")
  func kinds() async throws {
    for (json, value) in [("1.5", "1.5"), ("[1, 2]", nil), (#"["a"]"#, nil)] {
      let path = NSTemporaryDirectory() + "/settings-\(UUID().uuidString).json"
      defer { try? FileManager.default.removeItem(atPath: path) }
      try #"{"pages": {"path": "/a", "countLimit": \#(json)}}"#
        .write(toFile: path, atomically: true, encoding: .utf8)
      let reader = ConfigReader(
        provider: try await FileProvider<JSONSnapshot>(filePath: .init(path)))
      let error = #expect(throws: SettingError.self) {
        try CacheSettings(reader, section: "pages")
      }
      #expect(error?.key == "pages.countLimit")
      #expect(error?.value == value)
    }
  }
}
