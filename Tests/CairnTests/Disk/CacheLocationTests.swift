import Foundation
import Testing

@testable import Cairn

@Suite("The directory of a named cache")
struct CacheLocationTests {
  private func path(
    _ name: String, namespace: String? = nil, _ environment: [String: String]
  ) throws -> String {
    try CacheLocation.path(name: name, namespace: namespace, variables: environment)
  }

  @Test("The base is $XDG_CACHE_HOME, or ~/.cache if that is not an absolute path")
  func base() throws {
    #expect(try path("n", ["XDG_CACHE_HOME": "/x/c", "HOME": "/h"]) == "/x/c/n")
    #expect(try path("n", ["XDG_CACHE_HOME": "/x/c//", "HOME": "/h"]) == "/x/c/n")
    #expect(try path("n", ["XDG_CACHE_HOME": "x/c", "HOME": "/h"]) == "/h/.cache/n")
    #expect(try path("n", ["XDG_CACHE_HOME": "", "HOME": "/h/"]) == "/h/.cache/n")
    #expect(try path("n", ["HOME": "/h"]) == "/h/.cache/n")
    #expect(try path("n", namespace: "space", ["HOME": "/h"]) == "/h/.cache/space/n")
    // Without the variable, the home directory is the one that the system knows.
    #expect(try path("n", [:]).hasSuffix("/.cache/n"))
    #expect(try path("n", ["HOME": "relative"]).hasPrefix("/"))
  }

  @Test(
    "Names that could lead elsewhere are refused",
    arguments: [
      "", ".", "..", "a/b", "/", "../x", "a/", "a\0b", "/\u{301}",
      String(repeating: "é", count: 101),
    ])
  func refused(name: String) {
    // An empty namespace means none.
    let namespaced: [(String, String?)] = name.isEmpty ? [] : [("good", name)]
    for arguments in [(name, nil)] + namespaced {
      let error = #expect(throws: StoreError.self) {
        try CacheLocation.path(
          name: arguments.0, namespace: arguments.1, variables: ["HOME": "/h"])
      }
      guard case .invalidConfiguration(option: "name", _) = error else {
        return #expect(Bool(false), "it was \(error.debugDescription)")
      }
    }
  }

  @Test(
    "Other names are accepted",
    arguments: ["a", "...", ".hidden", "with space", "日本", String(repeating: "é", count: 100)])
  func taken(name: String) throws {
    #expect(try path(name, ["HOME": "/h"]) == "/h/.cache/" + name)
  }

  @Test("A named cache is created there, with all missing parents, for its user alone")
  func byName() throws {
    let scene = DiskScene()
    var configuration = DiskCacheConfiguration()
    configuration.namespace = "space"
    func open(_ name: String) throws -> DiskCache<String, Int> {
      try DiskCache.open(
        .name(name), configuration: configuration, keyCoder: .standard, valueCoder: .standard,
        variables: ["XDG_CACHE_HOME": scene("a/b")])
    }
    do {
      let cache = try open("numbers")
      #expect(cache.name == "numbers")
      #expect(cache.path == scene("a/b/space/numbers"))
      #expect("\(cache)" == "DiskCache numbers at \(cache.path)")
      try cache.setValue(1, forKey: "one")
      try cache.close()
    }
    for directory in ["a", "a/b", "a/b/space", "a/b/space/numbers"] {
      let attributes = try FileManager.default.attributesOfItem(atPath: scene(directory))
      #expect(attributes[.posixPermissions] as? Int == 0o700, "\(directory)")
    }
    let cache = try open("numbers")
    #expect(try cache.value(forKey: "one") == 1)
    #expect(throws: StoreError.self) { try open("../numbers") }
  }

  @Test("No cache is created inside another, by namespace, by variable, by path or by a link")
  func insideCache() throws {
    let scene = DiskScene()
    func open(_ name: String, in namespace: String?, home: String) throws {
      var configuration = DiskCacheConfiguration()
      configuration.namespace = namespace
      let cache = try DiskCache<String, Int>.open(
        .name(name), configuration: configuration, keyCoder: .standard, valueCoder: .standard,
        variables: ["XDG_CACHE_HOME": home])
      try cache.close()
    }
    let first: DiskCache<String, Int> = try .open(
      .path(scene("home/pages")), configuration: .init())
    try first.close()
    let pages = scene("home/pages")
    let before = try FileManager.default.contentsOfDirectory(atPath: pages).sorted()
    func expectRefusal(
      _ path: String, _ body: () throws -> Void, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
      let error = #expect(throws: StoreError.self, sourceLocation: sourceLocation) { try body() }
      guard case .unusable(path, let reason) = error,
        let store = reason.split(separator: ", ").last
      else {
        Issue.record("it was \(error.debugDescription)", sourceLocation: sourceLocation)
        return
      }
      #expect(error?.description.hasPrefix(path) == true, sourceLocation: sourceLocation)
      #expect(
        FileManager.default.fileExists(atPath: store + "/MANIFEST"), sourceLocation: sourceLocation)
      // The open was refused before anything was created.
      #expect(
        try FileManager.default.contentsOfDirectory(atPath: pages).sorted() == before,
        sourceLocation: sourceLocation)
    }
    try expectRefusal(pages + "/icons") { try open("icons", in: "pages", home: scene("home")) }
    try expectRefusal("\(pages)/\(CacheLocation.programName)/icons") {
      try open("icons", in: nil, home: pages)
    }
    try expectRefusal(pages + "/deep/space/icons") {
      try open("icons", in: "space", home: pages + "/deep")
    }
    try FileManager.default.createSymbolicLink(
      atPath: scene("link"), withDestinationPath: pages)
    try expectRefusal(scene("link/app/icons")) {
      try open("icons", in: "app", home: scene("link"))
    }
    try expectRefusal(pages + "/icons") {
      let _: DiskCache<String, Int> = try scene.cache(at: pages + "/icons")
    }
    try expectRefusal(pages + "/deep/icons") {
      let _: DiskCache<String, Int> = try .open(
        .path(pages + "/deep/icons"), configuration: .init())
    }
    // A directory that only has a file of such a name is not a cache.
    try FileManager.default.createDirectory(
      atPath: scene("home/other"), withIntermediateDirectories: false)
    try Data().write(to: URL(filePath: scene("home/other/MANIFEST")))
    try open("icons", in: "other", home: scene("home"))
    // Nor can a cache be created around another.
    try FileManager.default.removeItem(atPath: scene("home/other/MANIFEST"))
    try expectStoreError(scene("home/other")) {
      let _: DiskCache<String, Int> = try .open(
        .path(scene("home/other")), configuration: .init())
    }
  }

  private func expectStoreError(_ path: String, _ body: () throws -> Void) throws {
    let error = #expect(throws: StoreError.self) { try body() }
    #expect(error?.description.contains(path) == true)
  }

  @Test("By path, the name is the last component")
  func byPath() throws {
    let scene = DiskScene()
    let cache: DiskCache<String, Int> = try scene.cache(at: scene("some.cache/"))
    #expect(cache.name == "some.cache")
    #expect(cache.path == scene("some.cache/"))
    #expect(try cache.storeStatistics().formatVersion.isEmpty == false)
  }
}
