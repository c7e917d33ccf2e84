/// The reason why a move does not begin.
public enum MoveError: Error, Hashable {
  /// Another move of the store is in progress.
  case isMoving
  /// The call is within a write, for which the move would wait.
  case isWithinWrite
  /// One of the two paths is inside the other.
  case pathsOverlap
}

/// A move after which the recorded place may be either of the two. Both directories have all
/// writes. Reads continue, but writes throw this error until the store is opened again at the
/// recorded place.
public struct MoveIsUncertain: Error {
  /// Why the outcome is unknown.
  public let cause: any Error

  public init(cause: any Error) { self.cause = cause }
}

/// The old directory of a store that has moved.
public struct Remains: Sendable {
  public let path: String
  /// Why it could not be removed.
  public let error: any Error
}
