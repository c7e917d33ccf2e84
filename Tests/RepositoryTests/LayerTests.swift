import Foundation
import Testing

/// Rules on the sources themselves that the compiler does not check.
@Suite("The layers of the sources")
struct LayerTests {
  /// A module whose folders are layers.
  struct Module: Sendable, CustomTestStringConvertible {
    var name: String
    /// The folders, lowest first. Layers in one group do not use each other.
    var layers: [[String]]

    var testDescription: String { name }
  }

  static let modules = [
    Module(
      name: "CairnStore",
      layers: [
        ["Base"], ["Platform"], ["Format"], ["Log", "Index"], ["Files"], ["Opening"], ["Engine"],
        ["API"],
      ]),
    Module(name: "CairnRepair", layers: [["Salvage", "Verification"]]),
    // Files beside the folders bridge to Foundation and use none of the folders.
    Module(
      name: "Cairn",
      layers: [["Base"], ["Platform"], ["Loading"], ["Memory"], ["Disk"]]),
  ]

  @Test("A file uses only types of its own layer and those below", arguments: modules)
  func dependencies(module: Module) throws {
    for folder in module.layers.joined() { try check(folder, of: module) }
  }

  private func check(_ folder: String, of module: Module) throws {
    let level = try #require(module.layers.firstIndex { $0.contains(folder) })
    let forbidden = module.layers[level...].joined().filter { $0 != folder }
    var owners: [String: String] = [:]
    for folder in forbidden {
      for file in try Source.all(in: "Sources/\(module.name)/\(folder)") {
        for name in file.declaredTypes { owners[name] = folder }
      }
    }
    let files = try Source.all(in: "Sources/\(module.name)/\(folder)")
    #expect(!files.isEmpty)
    for file in files {
      for word in file.words where owners[word] != nil {
        Issue.record("\(file.name) in \(folder) uses \(word) of \(owners[word] ?? "")")
      }
    }
  }

  @Test("Files of the store use each other without cycles", arguments: modules.prefix(2))
  func circles(module: Module) throws {
    let files = try Source.all(in: "Sources/\(module.name)")
    var owners: [String: String] = [:]
    for file in files {
      for name in file.declaredTypes { owners[name] = file.name }
    }
    var uses: [String: Set<String>] = [:]
    for file in files {
      uses[file.name] = Set(file.words.compactMap { owners[$0] }).subtracting([file.name])
    }
    // A file that uses none of the remaining files is in no cycle, nor is a file that none of them
    // uses.
    var count = 0
    while count != uses.count {
      count = uses.count
      let used = uses.values.reduce(into: Set()) { $0.formUnion($1) }
      uses = uses.filter { !$0.value.isEmpty && used.contains($0.key) }
      uses = uses.mapValues { $0.filter { uses[$0] != nil } }
    }
    #expect(uses.keys.sorted() == [])
  }

  /// The words above are names of types. The compiler's own index has every use of every declaration.
  @Test(
    "A file uses only declarations of its own layer and those below",
    .enabled(if: ReferenceIndex.isThere, "needs python3 and the index of a debug build"),
    arguments: modules)
  func references(module: Module) throws {
    let references = try ReferenceIndex.references(in: module.name)
    #expect(references.count > 200)
    func level(_ path: String) -> (folder: String, level: Int)? {
      let folder = path.split(separator: "/").dropFirst(2).first.map(String.init) ?? ""
      return module.layers.firstIndex { $0.contains(folder) }.map { (folder, $0) }
    }
    for reference in references {
      guard let user = level(reference.user), let owner = level(reference.owner) else { continue }
      #expect(
        user.folder == owner.folder || owner.level < user.level,
        "\(reference.user):\(reference.line) uses \(reference.name) of \(reference.owner)")
    }
  }

  @Test("Public types of the store are words of Base or are under API")
  func publicTypes() throws {
    let files = try Source.all(in: "Sources/CairnStore")
    var names: [String] = []
    for file in files {
      for line in file.code {
        guard
          let found = line.firstMatch(
            of: /^public (?:final |indirect )?(?:struct|class|enum|protocol) (\w+)/)
        else { continue }
        names.append(String(found.1))
        #expect(["API", "Base"].contains(file.folder), "\(file.name): \(found.1)")
      }
    }
    #expect(names.contains("Store") && names.contains("StoreError"))
  }

  @Test("Offsets of bytes in files are in Format", arguments: modules.prefix(2))
  func offsets(module: Module) throws {
    for file in try Source.all(in: "Sources/\(module.name)")
    where !["Format", "Platform"].contains(file.folder) {
      for line in file.code {
        #expect(
          !line.contains(/\b(at|offset): \d{2,}|\b[1-9]\d*\.\.<\d{2,}\b/), "\(file.name): \(line)")
      }
    }
  }

  @Test("Every folder of a module with layers is a layer", arguments: modules)
  func folders(module: Module) throws {
    let url = Source.root.appending(path: "Sources/\(module.name)")
    let names = try FileManager.default.contentsOfDirectory(atPath: url.path)
    // The documentation is not a layer.
    let folders = names.filter { !$0.hasSuffix(".swift") && $0 != "\(module.name).docc" }
    #expect(Set(folders) == Set(module.layers.joined()))
    if module.name == "CairnStore" { #expect(names.allSatisfy { !$0.hasSuffix(".swift") }) }
  }

  @Test("The C library is imported only under Platform", arguments: modules)
  func systemImports(module: Module) throws {
    let names = ["Glibc", "Musl", "Darwin", "CairnLibC", "CCairn"]
    for file in try Source.all(in: "Sources/\(module.name)") where file.folder != "Platform" {
      for line in file.code where line.contains("import") {
        #expect(!names.contains { line.contains("import \($0)") }, "\(file.name): \(line)")
      }
    }
  }

  @Test("The store does not import Foundation", arguments: modules.prefix(2))
  func foundation(module: Module) throws {
    for file in try Source.all(in: "Sources/\(module.name)") {
      for line in file.code where line.contains("import") {
        #expect(!line.contains("Foundation"), "\(file.name): \(line)")
      }
    }
  }

  @Test("The caches import no more of Foundation than its essentials")
  func essentials() throws {
    for file in try Source.all(in: "Sources/Cairn") {
      for line in file.code where line.contains("import") && line.contains("Foundation") {
        #expect(line.hasSuffix("import FoundationEssentials"), "\(file.name): \(line)")
      }
    }
  }

  /// Where unsafe code is allowed outside Platform: spans of bytes and lifetimes, no pointers.
  static let unsafeFiles: Set = ["ByteSource.swift"]

  @Test("Unsafe code is under Platform, or where it is listed", arguments: modules)
  func unsafeCode(module: Module) throws {
    for file in try Source.all(in: "Sources/\(module.name)") where file.folder != "Platform" {
      let isUnsafe = file.words.contains("unsafe")
      #expect(isUnsafe == Self.unsafeFiles.contains(file.name), "\(file.name)")
      for word in file.words {
        #expect(!(word.hasPrefix("Unsafe") || word == "OpaquePointer"), "\(file.name): \(word)")
      }
    }
  }

  /// Files with types that guarantee their own thread safety; each type has a SAFETY comment.
  static let uncheckedFiles: Set = [
    "CacheLock.swift", "Dataset.swift", "FlatBuffer.swift", "LMDBStore.swift",
    "Forks.swift", "Lock.swift", "MappedMemory.swift", "NSCachePeer.swift", "PerProcess.swift",
    "PerThread.swift", "Pins.swift", "RawCopyStore.swift", "RawWriteStore.swift",
    "ReferenceStore.swift", "ReferenceTable.swift",
    "RocksDBStore.swift", "SQLiteConnection.swift", "SQLiteSession.swift", "SQLiteStore.swift",
    "SharedPage.swift", "SharedReaders.swift", "SharedWords.swift", "SlotArray.swift",
  ]

  @Test("Thread safety is unchecked only where it is listed, with the reason")
  func uncheckedSendable() throws {
    for file in try Source.all(in: "Sources") {
      let isUnchecked = file.code.contains { $0.contains("@unchecked Sendable") }
      #expect(isUnchecked == Self.uncheckedFiles.contains(file.name), "\(file.name)")
      if isUnchecked { #expect(file.text.contains("SAFETY:"), "\(file.name)") }
    }
  }

  @Test("No source file is longer than 400 lines")
  func length() throws {
    for file in try Source.all(in: "Sources") {
      #expect(file.code.count <= 400, "\(file.name)")
    }
  }

  /// The checksum is the larger part: `Docs/Performance.md` has the figures of its two ways. Pins
  /// need a thread-local variable, which Swift does not have.
  @Test("The C target stays below 510 lines, and below 310 without the checksum")
  func cTarget() throws {
    let folder = Source.root.appending(path: "Sources/CCairn")
    let names = try #require(FileManager.default.enumerator(atPath: folder.path)).compactMap {
      ($0 as? String).flatMap { $0.hasSuffix(".c") || $0.hasSuffix(".h") ? $0 : nil }
    }
    #expect(names.contains("CRC32C.c"))
    var lineCount = 0, checksumLineCount = 0
    for name in names {
      let text = try String(contentsOf: folder.appending(path: name), encoding: .utf8)
      let count = text.count { $0 == "\n" }
      lineCount += count
      if name == "CRC32C.c" { checksumLineCount = count }
    }
    #expect(lineCount < 510)
    #expect(lineCount - checksumLineCount < 310)
  }
}

/// A Swift file of the repository.
struct Source {
  var name: String
  var folder: String
  var text: String
  /// The lines of the file, without comments.
  var code: [String]

  static let root = URL(filePath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

  static func all(in path: String) throws -> [Source] {
    let base = root.appending(path: path)
    let enumerator = try #require(
      FileManager.default.enumerator(at: base, includingPropertiesForKeys: nil))
    var sources: [Source] = []
    while let url = enumerator.nextObject() as? URL {
      guard url.pathExtension == "swift" else { continue }
      let text = try String(contentsOf: url, encoding: .utf8)
      let code = text.split(separator: "\n", omittingEmptySubsequences: false).map { line in
        line.range(of: "//").map { String(line[..<$0.lowerBound]) } ?? String(line)
      }
      sources.append(
        Source(
          name: url.lastPathComponent, folder: url.deletingLastPathComponent().lastPathComponent,
          text: text, code: code))
    }
    return sources
  }

  /// The identifiers in the code, without those in literals.
  var words: Set<String> {
    let lines = code.map { $0.replacing(/"[^"\\]*"/, with: "\"\"") }
    return Set(
      lines.flatMap { $0.split { !($0.isLetter || $0.isNumber || $0 == "_") } }.map(String.init))
  }

  /// Types that are declared at the top level.
  var declaredTypes: [String] {
    let kinds = ["struct", "class", "enum", "protocol", "typealias"]
    return code.compactMap { line in
      guard let first = line.first, !first.isWhitespace else { return nil }
      let words = line.split { !($0.isLetter || $0.isNumber || $0 == "_") }.map(String.init)
      guard let kind = words.firstIndex(where: { kinds.contains($0) }), kind + 1 < words.count,
        !words.prefix(kind).contains("extension")
      else { return nil }
      return words[kind + 1]
    }
  }
}
