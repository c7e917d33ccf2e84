extension StoreError {
  /// The error of a reader, which cannot create the file.
  package static func withoutLock(path: String) -> StoreError {
    .notAStore(path: path, reason: "it has no file LOCK; opening it for writing creates one")
  }

  /// The failed call behind an error of the platform layer.
  var asFailure: SystemFailure {
    switch self {
    case .system(let failure), .poisoned(let failure), .durabilityUnknown(let failure): failure
    case .noSpace(let path, _, let limit):
      SystemFailure(
        call: "write", path: path, errorNumber: limit.errorNumber, reason: limit.description)
    default: SystemFailure(call: "write", path: "", errorNumber: 0, reason: description)
    }
  }
}

extension SpaceLimit {
  /// The system's error number for the limit.
  fileprivate var errorNumber: Int32 {
    switch self {
    case .disk: SystemError.noSpace
    case .quota: SystemError.quotaExceeded
    case .fileSize: SystemError.fileTooLarge
    }
  }
}
