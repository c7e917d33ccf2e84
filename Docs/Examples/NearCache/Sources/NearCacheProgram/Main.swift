import Foundation
import NearCacheTrial

/// Demonstrates or measures a near cache, or runs one machine of a test.
@main
enum Main {
  static let help = """
    near-cache demo                 shows what three machines read while the server is killed
    near-cache bench [--seconds N] [--rounds N] [--tasks N] [--outage N] [--part hot|read|zipf|outage]
                                    compares gets a second, p99 and an outage with plain Redis
    Each command starts a redis-server on a free port of 127.0.0.1, and stops it at the end.
    """

  static func main() async {
    let arguments = CommandLine.arguments.dropFirst()
    do {
      let options = try Options(arguments.dropFirst())
      switch arguments.first {
      case "demo": try await Demo.run()
      case "bench": try await Bench(options).run()
      case "worker": try await Worker.run(options)
      default:
        print(help)
        exit(2)
      }
    } catch {
      FileHandle.standardError.write(Data("near-cache: \(error)\n".utf8))
      exit(1)
    }
  }
}
