import CairnStore
import FoundationEssentials

/// What small stores cost, with a hundred entries each.
///
/// A hidden subcommand, run in two new processes: one that makes the stores, and one that only
/// opens and measures them.
enum SmallStores {
  enum Part: String, Codable, CaseIterable, CodingKeyRepresentable {
    /// The median time of an open, in milliseconds.
    case open
    /// The median time of a close where nothing was written, in milliseconds.
    case close
    /// Kilobytes of memory, without pages of files, that each open store takes.
    case memory
  }

  static let argument = "--small-stores"
  private static let entryCount = 100

  static func measure(_ count: Int, in directory: String) throws -> [Part: Double] {
    let output = "\(directory)/small-stores.json"
    for step in ["make", "measure"] {
      _ = try ChildRun.run(
        [ChildRun.program, argument, step, "\(count)", directory], output: output)
    }
    for number in 0...count { DirectoryTree.remove(path(number, directory)) }
    return try JSONDecoder().decode([Part: Double].self, from: Data(ProcFile.text(output).utf8))
  }

  static func run(_ arguments: [String]) -> Int32 {
    guard arguments.count == 3, let count = Int(arguments[1]) else { return 2 }
    do {
      if arguments[0] == "make" {
        try make(count, in: arguments[2])
      } else {
        let json = try JSONEncoder().encode(try parts(count, in: arguments[2]))
        print(String(decoding: json, as: UTF8.self))
      }
      return 0
    } catch {
      print("\(error)")
      return 1
    }
  }

  private static func path(_ number: Int, _ directory: String) -> String {
    "\(directory)/small-\(number)"
  }

  private static func open(_ number: Int, _ directory: String) throws -> Store {
    var configuration = StoreConfiguration()
    configuration.durability = .process
    return try Store(path: path(number, directory), configuration: configuration)
  }

  private static func make(_ count: Int, in directory: String) throws {
    let value = [UInt8](repeating: 7, count: 100)
    for number in 0...count {
      let store = try open(number, directory)
      for entry in 0..<entryCount { try store.setValue(value, forKey: "key \(entry)") }
      try store.close()
    }
  }

  private static func parts(_ count: Int, in directory: String) throws -> [Part: Double] {
    // The first store also pays for what all stores share.
    let first = try open(0, directory)
    let before = ProcessMemory.anonymousByteCount
    var stores: [Store] = []
    var openings: [UInt64] = []
    var closings: [UInt64] = []
    for number in 1...count {
      let begin = monotonicNanoseconds()
      let store = try open(number, directory)
      openings.append(monotonicNanoseconds() - begin)
      stores.append(store)
    }
    for store in stores {
      let value = try store.value(forKey: "key \(entryCount - 1)")
      guard value?.count == 100 else { throw BenchFailure.unsuited("a small store lost a value") }
    }
    let memory = ProcessMemory.anonymousByteCount - before
    for store in stores {
      let begin = monotonicNanoseconds()
      try store.close()
      closings.append(monotonicNanoseconds() - begin)
    }
    try first.close()
    return [
      .open: median(openings) / 1e6, .close: median(closings) / 1e6,
      .memory: Double(memory) / 1e3 / Double(stores.count),
    ]
  }

  private static func median(_ values: [UInt64]) -> Double {
    Double(values.sorted()[values.count / 2])
  }
}
