internal import CairnStore

#if canImport(Darwin)
  internal import CairnLibC
  internal import Dispatch

  /// Reports of memory shortages from Darwin's kernel, which delivers them to a queue.
  final class DispatchPressureSource: PressureSource {
    private let last = Lock<MemoryPressure?>(nil, waits: true)
    // SAFETY: used only in `init` and `deinit`, and by the handler that it runs.
    nonisolated(unsafe) private let source = DispatchSource.makeMemoryPressureSource(
      eventMask: [.warning, .critical], queue: .global())

    init() {
      unsafe source.setEventHandler { [weak self] in
        guard let self else { return }
        let pressure: MemoryPressure =
          unsafe source.data.contains(.critical) ? .critical : .moderate
        last.withLock { $0 = max($0 ?? pressure, pressure) }
        last.wakeAll()
      }
      unsafe source.resume()
    }

    deinit { unsafe source.cancel() }

    func next() -> MemoryPressure? {
      last.waitUntil { last in
        defer { last = nil }
        return last
      }
    }
  }
#endif

/// The reports of this system.
func systemPressureSource() -> any PressureSource {
  #if canImport(Darwin)
    DispatchPressureSource()
  #else
    SystemPressureSource()
  #endif
}
