import Cairn
import CairnRepair
import Foundation
import Testing

@Suite("The samples of Errors")
struct ErrorSamples {
  static func store(
    _ photo: [UInt8], in photos: DiskCache<String, [UInt8]>, _ report: (String, Int32?) -> Void
  ) async throws(StoreError) {
    do throws(StoreError) {
      try await photos.setValue(photo, forKey: "lake")
    } catch {
      switch error {
      case .noSpace: try await photos.trim(.toCount(photos.count() / 2))
      case .locked(let path, _, let processID, _): report("\(path) is open", processID)
      case .corrupt: report("damaged: \(error)", nil)
      default: throw error
      }
    }
  }

  @Test("A failure is recognised by its type")
  func typed() async {
    await #expect(processExitsWith: .success) {
      try await inNewDirectory {
        var configuration = DiskCacheConfiguration(byteLimit: 1 << 30)
        configuration.store.log = DiagnosticLog(from: .info) { message in print(message) }
        let photos = try await DiskCache<String, [UInt8]>.open(
          .name("photos"), configuration: configuration)

        try await ErrorSamples.store([1, 2, 3], in: photos) { text, _ in Issue.record("\(text)") }
        #expect(photos["lake"] == [1, 2, 3])
        try await photos.close()
        await #expect(throws: StoreError.closed(path: photos.path)) {
          try await ErrorSamples.store([1, 2, 3], in: photos) { text, _ in Issue.record("\(text)") }
        }
      }
    }
  }

  @Test("A cache whose directory was removed is opened again")
  func reopened() async {
    await #expect(processExitsWith: .success) {
      try await inNewDirectory {
        var configuration = DiskCacheConfiguration(byteLimit: 1 << 30)
        configuration.store.durability = .durable
        configuration.store.log = .silent
        var pages = try await DiskCache<String, [UInt8]>.open(
          .name("pages"), configuration: configuration)
        let (url, page): (String, [UInt8]) = ("/", [1])
        try await pages.setValue(page, forKey: url)
        // Housekeeping may create a file while the directory is being removed.
        while FileManager.default.fileExists(atPath: pages.path) {
          try? FileManager.default.removeItem(atPath: pages.path)
        }

        do {
          try await pages.setValue(page, forKey: url)
        } catch StoreError.vanished {
          try? await pages.close()
          pages = try await .open(.name("pages"), configuration: configuration)
        }

        #expect(try pages.count() == 0)
        try await pages.setValue(page, forKey: url)
        #expect(try pages.value(forKey: url) == page)
        try await pages.close()
      }
    }
  }

  @Test("A damaged store is salvaged, and the copy is sound")
  func salvage() async {
    await #expect(processExitsWith: .success) {
      try await inNewDirectory {
        let store = try Store(path: "photos.cairn")
        for number in 0..<10 {
          try store.setValue([UInt8](repeating: 7, count: 1_000), forKey: "\(number)")
        }
        try store.close()
        try ErrorSamples.damage("photos.cairn")

        let report = try Store.salvage(path: "photos.cairn", to: "recovered.cairn")
        print(report.entryCount, "entries were copied,", report.lostKeyCount, "keys were lost")

        #expect(report.entryCount == 9)
        #expect(report.lostKeyCount == 1)

        let check = try Store.verify(path: "recovered.cairn")
        for damage in check.damage { print(damage) }

        #expect(check.damage.isEmpty)
        #expect(try Store(path: "recovered.cairn").count() == 9)
      }
    }
  }

  /// Changes a byte in the middle of one value.
  static func damage(_ path: String) throws {
    let names = try FileManager.default.contentsOfDirectory(atPath: path)
    let name = try #require(names.first { $0.hasPrefix("seg-") })
    let url = URL(filePath: path + "/" + name)
    var bytes = try Data(contentsOf: url)
    let value = try #require(bytes.range(of: Data(repeating: 7, count: 1_000)))
    bytes[value.lowerBound + 500] ^= 1
    try bytes.write(to: url)
  }
}
