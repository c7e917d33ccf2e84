/// Why a store or cache evicted an entry. The description is a stable word.
public struct EvictionCause: Sendable, Hashable, CustomStringConvertible {
  @usableFromInline let number: Int

  @inlinable init(_ number: Int) { self.number = number }

  /// `countLimit`, `byteLimit`, `costLimit`, `freeDiskSpace`, `trim`, `memoryPressure` or
  /// `background`.
  public var description: String {
    [
      "countLimit", "byteLimit", "costLimit", "freeDiskSpace", "trim", "memoryPressure",
      "background",
    ][number]
  }

  /// The limit on the number of entries.
  @inlinable package static var countLimit: Self { Self(0) }
  /// The limit on bytes on disk.
  @inlinable package static var byteLimit: Self { Self(1) }
  /// The limit on cost in memory. A value that alone costs more than the limit is evicted at once,
  /// and no other entry is.
  @inlinable package static var costLimit: Self { Self(2) }
  /// Free space on the disk: `freeDiskSpaceFloor`, or a trim to free space.
  @inlinable package static var freeDiskSpace: Self { Self(3) }
  /// A caller's trim to a number, a size or an age.
  @inlinable package static var trim: Self { Self(4) }
  /// A system memory shortage.
  @inlinable package static var memoryPressure: Self { Self(5) }
  /// The program went to the background.
  @inlinable package static var background: Self { Self(6) }
}
