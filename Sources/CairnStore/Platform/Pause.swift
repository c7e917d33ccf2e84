internal import CairnLibC

/// Pauses this thread for about this long, so that other threads get the processor and the disk.
package func pause(for duration: Duration) {
  let (seconds, attoseconds) = duration.components
  guard seconds >= 0, attoseconds >= 0 else { return }
  var time = timespec(
    tv_sec: Int(clamping: seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
  // A signal may end the pause early, which does no harm.
  _ = unsafe nanosleep(&time, nil)
}
