/// The names of a store's files. They come from integers only, so no key can name a file.
package enum FileName {
  package static let lock = "LOCK"
  package static let manifest = "MANIFEST"
  /// The manifest before it is put into place, and the space for it.
  package static let newManifest = "MANIFEST.new"
  /// Space that is kept for what gives space back on a full disk.
  package static let reserve = "RESERVE"
  /// The folder for files of the store's kind that the manifest does not know.
  package static let quarantine = "quarantine"

  /// In a directory that is to become a copy of a store, until it is one.
  package static let unfinishedCopy = "UNFINISHED-COPY"

  /// Whether a name is that of a segment.
  package static func isSegment(_ name: String) -> Bool {
    name.hasPrefix("seg-") && identifier(in: name) != nil
  }

  /// Whether a name is that of a checkpoint.
  package static func isCheckpoint(_ name: String) -> Bool {
    name.hasPrefix("ckpt-") && identifier(in: name) != nil
  }

  /// `seg-` and the id as 16 hexadecimal digits.
  package static func segment(_ id: SegmentID) -> String { "seg-" + digits(of: id.rawValue) }

  /// `ckpt-` and the id as 16 hexadecimal digits.
  package static func checkpoint(_ id: UInt64) -> String { "ckpt-" + digits(of: id) }

  private static func digits(of id: UInt64) -> String {
    let digits = String(id, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }

  /// The id in the name of a segment or checkpoint, or `nil` for any other name.
  package static func identifier(in name: String) -> UInt64? {
    guard name.hasPrefix("seg-") || name.hasPrefix("ckpt-"),
      let digits = name.split(separator: "-", maxSplits: 1).last, digits.utf8.count == 16,
      digits.utf8.allSatisfy({ (48...57).contains($0) || (97...102).contains($0) })
    else { return nil }
    return UInt64(digits, radix: 16)
  }
}

extension Corruption {
  /// Of a directory that holds files of a store and no manifest.
  static func ofMissingManifest(among names: [String]) -> Corruption {
    let isCopy = names.contains(FileName.unfinishedCopy)
    return Corruption(
      file: FileName.manifest, offset: 0, cause: isCopy ? .unfinishedCopy : .missingFile)
  }
}
