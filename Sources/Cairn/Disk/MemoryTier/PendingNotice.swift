/// When to report a read to the disk.
@usableFromInline
struct PendingNotice: OptionSet, Sendable {
  @usableFromInline var rawValue: UInt8

  @inlinable
  init(rawValue: UInt8) { self.rawValue = rawValue }

  /// After a while, together with all other accesses until then.
  @inlinable static var later: PendingNotice { PendingNotice(rawValue: 1) }
  /// At once, for this entry only, because it has an idle limit.
  @inlinable static var atOnce: PendingNotice { PendingNotice(rawValue: 2) }
}
