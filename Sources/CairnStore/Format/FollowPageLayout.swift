/// The layout of the head and the words of the page `FOLLOW`, little-endian;
/// Docs/FileFormat/Following.md has the table.
package enum FollowPageLayout {
  package static let magic: [UInt8] = [0x8B, 0x43, 0x52, 0x4E, 0x46, 0x0D, 0x0A, 0x1A]  // "CRNF"
  package static let headByteCount = 52
  package static let positionOffset = 64
  package static let generationOffset = 72
  package static let sessionOffset = 80
  package static let capacityOffset = 88

  /// The head of a store's page in one boot.
  package static func head(storeIdentifier: [UInt8], bootIdentifier: [UInt8]) -> [UInt8] {
    var bytes = magic + [1, 0, 0, 0, 0, 0, 0, 0] + storeIdentifier + bootIdentifier
    bytes.append(littleEndian: CRC32C.checksum(of: bytes.rawSpan))
    return bytes
  }
}
