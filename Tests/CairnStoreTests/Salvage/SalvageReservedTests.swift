import CairnRepair
import CairnStore
import Foundation
import FuzzSupport
import Testing

/// Open segments without a file. A session reserves segments before it uses them, so such a segment
/// may never have been written, or it may be lost with everything in it.
@Suite("Salvage: segments without a file")
struct SalvageReservedTests {
  private enum Way: CaseIterable {
    case missing, empty, short, zeros

    func apply(to name: String, of image: Image) -> Image {
      var image = image
      switch self {
      case .missing: image.files[name] = nil
      case .empty: image.files[name] = []
      case .short: image.files[name]?.removeSubrange(71...)
      case .zeros:
        image.files[name] = [UInt8](repeating: 0, count: image.files[name]?.count ?? 0)
      }
      return image
    }
  }

  /// Found by an independent reader: salvage called such a copy complete, and a removed key was
  /// back with its old value. A copy of a store in use that misses its newest file looks like this.
  @Test("A lost last segment is a loss, in this boot and in another", arguments: [nil, otherBoot])
  func lastSegment(boot: [UInt8]?) throws {
    let killed = try SeveralSegmentsTests.killed.get()
    let name = try killed.lastSegment
    for way in Way.allCases {
      let salvaged = try Salvaged(way.apply(to: name, of: killed.image), boot: boot)
      #expect(salvaged.report.losses.map(\.place.file) == [name], "\(way)")
      #expect(salvaged.report.kinds == [.olderValuesMayBeBack], "\(way)")
      #expect(!salvaged.report.isComplete && salvaged.entries["last"] == nil, "\(way)")
      #expect(salvaged.entries.count > 100, "\(way)")
    }
  }

  @Test("So is the only segment of a session", arguments: [nil, otherBoot])
  func firstSegment(boot: [UInt8]?) throws {
    let killed = try KilledStore { try $0.setValue("value", forKey: "key") }
    let name = try killed.lastSegment
    for way in Way.allCases {
      let salvaged = try Salvaged(way.apply(to: name, of: killed.image), boot: boot)
      #expect(salvaged.report.losses.map(\.place.file) == [name], "\(way)")
      #expect(!salvaged.report.isComplete, "\(way)")
    }
  }

  @Test("A checkpoint shows that a segment was written", arguments: [nil, otherBoot])
  func covered(boot: [UInt8]?) throws {
    // The second example of the document, without its second segment.
    var image = Image()
    for (name, bytes) in try IndependentReader.filesInDocument(section: 16) {
      image.files[name] = bytes
    }
    image.files["LOCK"] = []
    let bootOfImage = try image.manifest.bootIdentifier
    #expect(try Salvaged(image, boot: boot ?? bootOfImage).report.losses == [])
    let name = "seg-0000000000000002"
    image.files[name] = nil
    let salvaged = try Salvaged(image, boot: boot ?? bootOfImage)
    #expect(salvaged.report.losses.map(\.place.file) == [name])
    #expect(salvaged.report.losses.map(\.place.cause) == [.missingFile])
    #expect(salvaged.report.kinds == [.olderValuesMayBeBack])
  }

  /// The opposite was told as a loss: the log ends there, and what follows is a torn tail.
  @Test("After a power cut, a segment that never got to the disk is no loss", arguments: [0, 1])
  func neverWritten(index: Int) throws {
    let killed = try SeveralSegmentsTests.killed.get()
    let name = killed.image.segmentNames[index]
    for way in Way.allCases {
      let image = way.apply(to: name, of: killed.image)
      let salvaged = try Salvaged(image, boot: otherBoot)
      #expect(salvaged.report.losses == [], "\(way)")
      #expect(salvaged.report.tornByteCount > 0 && !salvaged.report.isComplete, "\(way)")
      #expect(try Opening(image, boot: otherBoot) == .contents(salvaged.values), "\(way)")
      // In the same boot, nothing that was written can be missing.
      #expect(try Salvaged(image).report.losses.map(\.place.file) == [name], "\(way)")
    }
  }
}
