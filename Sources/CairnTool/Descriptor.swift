import CairnLibC

/// A file descriptor that is closed when its last reference is released.
final class Descriptor {
  let number: Int32
  private var isOwned: Bool

  init(_ number: Int32, isOwned: Bool = true) {
    self.number = number
    self.isOwned = isOwned
  }

  deinit {
    if isOwned { close(number) }
  }

  /// Leaves closing to another owner.
  func disown() { isOwned = false }

  static var standardInput: Descriptor { Descriptor(STDIN_FILENO, isOwned: false) }
  static var standardOutput: Descriptor { Descriptor(STDOUT_FILENO, isOwned: false) }
  static var standardError: Descriptor { Descriptor(STDERR_FILENO, isOwned: false) }
}
