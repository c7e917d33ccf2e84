import CairnStore

/// What versions promise to a caller that keeps them.
extension CrashRun {
  /// A version that was given to one value is never given to another, even if a crash has taken the
  /// first.
  func note(_ versions: [[UInt8]: UInt64], in state: ModelState? = nil) throws {
    for (key, version) in versions {
      guard let value = (state ?? model.current)[key]?.value else { continue }
      if let known = given.updateValue([key, value], forKey: version), known != [key, value] {
        throw FuzzFailure("version \(version) was given before, to another value")
      }
    }
  }
}
