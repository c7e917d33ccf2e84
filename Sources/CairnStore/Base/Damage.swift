/// A damaged place in a store's files, which was left unchanged or copied.
public struct Damage: Sendable, Hashable {
  /// The file, the offset and what is wrong there. A damaged value affects one key. A damaged head
  /// of a record (`badRecordHeader`) may affect several keys, or belong to a removal.
  public let place: Corruption
  /// The keys at this place, if known. The key of a damaged head is known only if its bytes are
  /// sound. The damage that an open finds has no keys.
  public let keys: [[UInt8]]
  /// The number of keys whose newest values are at this place, including unknown keys, or `nil` if
  /// it was not counted. It is 0 if no read needs the damaged records.
  package var keyCount: Int?
  /// The offset of the end of the damaged bytes, if known.
  private var end: Int?

  /// The damaged bytes, or an empty range if their end is unknown.
  package var range: Range<Int> { place.offset..<(end ?? place.offset) }

  package init(place: Corruption, keys: [[UInt8]] = [], keyCount: Int? = nil) {
    self.place = place
    self.keys = keys
    self.keyCount = keyCount
  }

  /// A range of a file that could not be interpreted.
  package init(
    lost range: Range<Int>, of file: String, _ cause: Corruption.Cause, key: [UInt8]? = nil
  ) {
    self.init(
      place: Corruption(file: file, offset: range.lowerBound, cause: cause),
      keys: key.map { [$0] } ?? [])
    end = range.upperBound
  }
}

extension Damage: CustomStringConvertible {
  /// File, bytes and cause in one line, without the keys.
  public var description: String {
    guard let end else { return place.description }
    return "\(place.file) from offset \(place.offset) to \(end): \(place.cause)"
  }
}
