/// The names of a store's files. The variable parts are integers, so no key can name a file.
package enum FileName {
  package static let lock = "LOCK"
  package static let manifest = "MANIFEST"
  /// The next manifest until it is put into place, and the space for it.
  package static let newManifest = "MANIFEST.new"
  /// The manifest for the start of the next session. It was durable before it got this name.
  package static let nextManifest = "MANIFEST.next"
  /// The manifest for the start of the next session before it is durable.
  package static let newNextManifest = "MANIFEST.next.new"
  /// The files that a directory may contain before it becomes a store. A power cut may keep any of
  /// them and undo the name of the first manifest, and a store whose directory is being removed may
  /// leave any of them.
  package static let beforeManifest = [
    lock, newManifest, nextManifest, newNextManifest, reserve, spare, followPage, quarantine,
  ]
  /// Space kept for operations that reclaim space on a full disk.
  package static let reserve = "RESERVE"
  /// An empty file, kept for those operations in case the filesystem can add no file.
  package static let spare = "SPARE"
  /// The page in which the writer announces the end of the log.
  package static let followPage = "FOLLOW"
  /// The folder for files that look like a store's but are not in the manifest.
  package static let quarantine = "quarantine"
  /// The root of a new filesystem contains this directory.
  package static let lostAndFound = "lost+found"

  /// Marks a directory in which a copy of a store is unfinished.
  package static let unfinishedCopy = "UNFINISHED-COPY"

  /// Whether a name is a segment's.
  package static func isSegment(_ name: String) -> Bool {
    name.hasPrefix("seg-") && identifier(in: name) != nil
  }

  /// `seg-` and the id as 16 hexadecimal digits.
  package static func segment(_ id: SegmentID) -> String { name("seg-", id.rawValue) }

  /// `ckpt-` and the id as 16 hexadecimal digits.
  package static func checkpoint(_ id: UInt64) -> String { name("ckpt-", id) }

  private static func name(_ prefix: String, _ id: UInt64) -> String {
    var bytes = Array(prefix.utf8)
    for shift in stride(from: 60, through: 0, by: -4) {
      let digit = UInt8(id >> shift & 15)
      bytes.append(digit < 10 ? 48 + digit : 87 + digit)
    }
    return String(decoding: bytes, as: UTF8.self)
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
  /// The error for a directory that has files of a store but no manifest.
  package static func ofMissingManifest(among names: [String]) -> Corruption {
    let isCopy = names.contains(FileName.unfinishedCopy)
    return Corruption(
      file: FileName.manifest, offset: 0, cause: isCopy ? .unfinishedCopy : .missingFile)
  }
}
