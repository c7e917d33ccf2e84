extension Optional<Engine.Existing> {
  /// The failure of a compare-and-set that finds this, or `nil` where it may go on.
  ///
  /// - Throws: where the version cannot be read and matters.
  func mismatch(_ expectation: Engine.Expectation) throws(StoreError) -> CompareAndSetResult? {
    if case .anything = expectation { return nil }
    if let damage = self?.damage {
      if case .damaged(let location) = expectation {
        if case .corrupt = damage {
          return self?.location == location ? nil : .mismatch(current: nil)
        }
      }
      throw damage
    }
    let current = flatMap { $0.hasExpired ? nil : $0.sequence }
    switch expectation {
    case .anything: return nil
    case .absent: return current == nil ? nil : .mismatch(current: current)
    case .version(let version): return current == version ? nil : .mismatch(current: current)
    case .absentAndWanted(let isWanted):
      return current == nil && isWanted() ? nil : .mismatch(current: current)
    case .damaged: return .mismatch(current: current)
    }
  }
}
