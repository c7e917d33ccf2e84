/// When to tell the disk of a read.
@usableFromInline
struct PendingNotice: OptionSet, Sendable {
  @usableFromInline var rawValue: UInt8

  @inlinable
  init(rawValue: UInt8) { self.rawValue = rawValue }

  /// After a while: everything accessed until then.
  @inlinable static var later: PendingNotice { PendingNotice(rawValue: 1) }
  /// Now, for this entry only: it has an idle limit.
  @inlinable static var atOnce: PendingNotice { PendingNotice(rawValue: 2) }
}
