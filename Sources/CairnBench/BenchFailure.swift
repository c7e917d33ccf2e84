import CairnLibC

/// Why a run ended without a report. Each case ends with exit status 1.
enum BenchFailure: Error, CustomStringConvertible {
  /// A store returned something other than what was written to it.
  case mismatch(store: String, workload: String, key: String, detail: String)
  case system(call: String, path: String, errorNumber: Int32)
  /// A failed call to a peer's library.
  case peer(_ store: String, call: String, message: String)
  case unsuited(String)
  /// A worker process ended or reported a failure.
  case worker(String)

  /// The failure of the last system call, from `errno`.
  static func lastSystemError(_ call: String, _ path: String) -> BenchFailure {
    .system(call: call, path: path, errorNumber: errno)
  }

  var description: String {
    switch self {
    case .mismatch(let store, let workload, let key, let detail):
      "MISMATCH: store \(store), workload \(workload), key \(key): \(detail)"
    case .system(let call, let path, let number):
      // SAFETY: strerror returns a NUL-terminated string that stays valid until the next call.
      "\(call) \(path): \(unsafe String(cString: strerror(number)))"
    case .peer(let store, let call, let message): "\(store): \(call): \(message)"
    case .unsuited(let what), .worker(let what): what
    }
  }
}
