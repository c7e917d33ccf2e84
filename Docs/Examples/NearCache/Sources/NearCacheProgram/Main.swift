import Foundation
import NearCacheTrial

/// Shows a near cache at work, measures it, or is one of the machines of a test.
@main
enum Main {
  static let help = """
    near-cache demo                 three machines, a server that is killed, and what each reads
    near-cache bench [--seconds N] [--rounds N] [--tasks N] [--outage N] [--part hot|read|zipf|outage]
                                    near cache against plain Redis: gets a second and p99; what an outage does
    Each starts a redis-server of its own on a free port of 127.0.0.1, and ends it.
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
