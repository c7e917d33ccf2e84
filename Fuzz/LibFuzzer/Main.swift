import CairnLibC
import FuzzSupport

#if LIBFUZZER
  import LibFuzzerDriver
#endif

/// Runs one target of the table in `FuzzTarget`.
///
///     LibFuzzer TARGET [option or folder]…   compiled with LIBFUZZER: fuzzes, as libFuzzer does
///     LibFuzzer TARGET FILE-OR-FOLDER…       without: replays inputs
@main
enum LibFuzzer {
  static func main() {
    let names = FuzzTarget.all.map(\.name).joined(separator: ", ")
    guard CommandLine.arguments.count > 1, let target = FuzzTarget.named(CommandLine.arguments[1])
    else {
      print("usage: LibFuzzer TARGET ARGUMENT…\ntargets: \(names)")
      exit(2)
    }
    run(target)
  }

  #if LIBFUZZER
    // SAFETY: set once, before libFuzzer calls back on the same thread.
    nonisolated(unsafe) private static var target: FuzzTarget?

    private static func run(_ chosen: FuzzTarget) {
      unsafe target = chosen
      // SAFETY: the program's own arguments without the target's name: libFuzzer keeps pointers to
      // them, and they live as long as the process.
      let count = Int(CommandLine.argc) - 1
      let arguments = UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>.allocate(
        capacity: count + 1)
      unsafe arguments[0] = CommandLine.unsafeArgv[0]
      for index in 1...count { unsafe arguments[index] = CommandLine.unsafeArgv[index + 1] }
      var argc = CInt(count)
      var argv: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = unsafe arguments
      exit(
        unsafe LLVMFuzzerRunDriver(&argc, &argv) { data, size in
          // SAFETY: libFuzzer's bytes are live during the call.
          let bytes = unsafe [UInt8](UnsafeBufferPointer(start: data, count: size))
          do { try unsafe LibFuzzer.target?.run(bytes) } catch { fatalError("\(error)") }
          return 0
        })
    }
  #else
    private static func run(_ target: FuzzTarget) {
      var count = 0
      do {
        for path in CommandLine.arguments.dropFirst(2) {
          for input in try Corpus.inputs(at: path) {
            do { try target.run(input.bytes) } catch {
              print("\(input.path): \(error)")
              exit(1)
            }
            count += 1
          }
        }
      } catch {
        print(error)
        exit(2)
      }
      print("\(target.name): \(count) inputs replayed, 0 failures")
    }
  #endif
}
