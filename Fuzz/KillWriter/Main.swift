import CairnLibC
import CairnStore

/// The tests run this program as a separate process. It writes until it is killed, or creates a
/// situation that would disturb the test process: another user, no standard streams, limits,
/// signals, fork.
///
///     KillWriter MODE PATH [ARGUMENT...]
///
/// Exits with 0 on success, otherwise with 1 and the reason on standard output.
@main
enum KillWriter {
  static func main() {
    let arguments = CommandLine.arguments
    guard arguments.count >= 3 else { fail("KillWriter MODE PATH [ARGUMENT...]") }
    let path = arguments[2]
    let numbers = arguments.dropFirst(3).map { UInt64($0) ?? 0 }
    do {
      switch arguments[1] {
      case "write":
        try Writer.run(
          path: path, seed: numbers[0], threads: Int(numbers[1]), mayFail: numbers.count > 2)
      case "followed":
        try Writer.runFollowed(path: path, seed: numbers[0], base: Int(numbers[1]))
      case "followed-cache": try Writer.runFollowedCache(path: path, first: Int(numbers[0]))
      case "hold": try Situations.hold(path: path)
      case "fork": try Situations.fork(path: path)
      case "fork-beside-timer": try Situations.forkBesideTimer(path: path)
      case "fork-beside-caches": try Situations.forkBesideCaches(path: path)
      case "umask": try Situations.umask(path: path, mask: mode_t(numbers[0]))
      case "no-standard-streams": try Situations.withoutStandardStreams(path: path)
      case "user": try Situations.asUser(path: path, identifier: uid_t(numbers[0]))
      case "signals": try Situations.signals(path: path)
      case "file-size-limit":
        try Situations.fileSizeLimit(path: path, byteCount: numbers[0], ignoring: numbers[1] == 1)
      case "descriptor-limit":
        try Situations.descriptorLimit(
          path: path, timersRun: numbers.first == 1)
      case "many-segments":
        try Situations.manySegments(
          path: path, count: Int(numbers[0]), byCalls: numbers[1] == 1)
      case "fill": try Situations.fill(path: path)
      case "golden-interrupted":
        let name = arguments.dropFirst(3).first ?? ""
        guard let moment = GoldenStore.Moment(rawValue: name) else { fail("no moment \(name)") }
        try GoldenStore.writeInterrupted(path: path, at: moment)
      case "golden":
        let name = arguments.dropFirst(3).first ?? ""
        guard let end = GoldenStore.End(rawValue: name) else { fail("no end \(name)") }
        try GoldenStore.write(path: path, end)
      case "golden-cache": try GoldenCache.write(path: path)
      case "thread-limit": try Situations.threadLimit(path: path)
      default: fail("no mode \(arguments[1])")
      }
    } catch {
      fail("\(error)")
    }
  }
}

/// Prints a reason and ends the process.
func fail(_ reason: String) -> Never {
  say(reason)
  exit(1)
}

/// Ends the process if a condition does not hold.
func require(_ holds: Bool, _ reason: @autoclosure () throws -> String) rethrows {
  if !holds { fail(try reason()) }
}

/// Writes a line to standard output at once.
func say(_ line: String) {
  var line = line + "\n"
  line.withUTF8 { bytes in _ = unsafe write(1, bytes.baseAddress, bytes.count) }
}

/// The `StoreError` that a body throws, or `nil`.
func storeError(_ body: () throws -> Void) -> StoreError? {
  do {
    try body()
    return nil
  } catch let error as StoreError {
    return error
  } catch {
    fail("not an error of the store: \(error)")
  }
}

/// Small segments, so that they roll often.
func configuration(_ durability: Durability = .process) -> StoreConfiguration {
  var configuration = StoreConfiguration()
  configuration.log = .silent
  configuration.segmentByteLimit = 64 << 10
  configuration.durability = durability
  return configuration
}
