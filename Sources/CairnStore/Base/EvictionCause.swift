/// Why a store or cache evicted an entry. The description is a stable word.
public struct EvictionCause: Sendable, Hashable, CustomStringConvertible {
  // One byte, so that a `RemovalCause` is one byte too.
  @usableFromInline
  package enum Kind: String, Sendable {
    case countLimit, byteLimit, costLimit, freeDiskSpace, trim, memoryPressure, background
  }

  @usableFromInline package let kind: Kind

  @inlinable init(_ kind: Kind) { self.kind = kind }

  /// `countLimit`, `byteLimit`, `costLimit`, `freeDiskSpace`, `trim`, `memoryPressure` or
  /// `background`.
  public var description: String { kind.rawValue }

  /// The limit on the number of entries.
  @inlinable package static var countLimit: Self { Self(.countLimit) }
  /// The limit on bytes on disk.
  @inlinable package static var byteLimit: Self { Self(.byteLimit) }
  /// The limit on cost in memory. A value that alone costs more than the limit is evicted at once,
  /// and no other entry is.
  @inlinable package static var costLimit: Self { Self(.costLimit) }
  /// Free space on the disk: `freeDiskSpaceFloor`, or a trim to free space.
  @inlinable package static var freeDiskSpace: Self { Self(.freeDiskSpace) }
  /// A caller's trim to a number, a size or an age.
  @inlinable package static var trim: Self { Self(.trim) }
  /// A system memory shortage.
  @inlinable package static var memoryPressure: Self { Self(.memoryPressure) }
  /// The program went to the background.
  @inlinable package static var background: Self { Self(.background) }
}
