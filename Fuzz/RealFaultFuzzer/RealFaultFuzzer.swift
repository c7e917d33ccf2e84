import CairnLibC
import CairnRepair
import CairnStore
import FuzzSupport

/// Faults made by the machine, not by a simulation: small filesystems filled to the last page, a
/// file-size limit, and processes that compete for one store.
///
///     RealFaultFuzzer --full-disk | --file-size | --locks
@main
enum RealFaultFuzzer {
  static func main() {
    let arguments = CommandLine.arguments
    if arguments.count >= 4, arguments[1] == "--worker" {
      Worker.run(arguments[2], store: arguments[3], Array(arguments.dropFirst(4)))
    }
    let fuzzer = Fuzzer(
      name: "RealFaultFuzzer", iterations: 100,
      options: ["--full-disk", "--file-size", "--locks"])
    switch fuzzer.arguments {
    case ["--full-disk"]:
      guard TinyDisk.isAvailable else {
        Fuzzer.end(with: 2, "RealFaultFuzzer: only root may mount a small filesystem")
      }
      fuzzer.run { try SmallDiskRun.run(seed: $0) }
    case ["--file-size"]: fuzzer.run { try FileSizeRun.run(seed: $0) }
    case ["--locks"]: fuzzer.run { try LockRun.run(seed: $0) }
    default: Fuzzer.end(with: 2, "RealFaultFuzzer: --full-disk, --file-size or --locks")
    }
  }
}

/// The `StoreError` that a body throws, or `nil`.
func storeError(_ body: () throws -> Void) throws -> StoreError? {
  do {
    try body()
    return nil
  } catch let error as StoreError {
    return error
  }
}

/// Checks that a store has exactly the expected contents, in memory and on disk.
func check<Key: Hashable>(
  _ store: borrowing Store, holds values: [Key: [UInt8]], name: (Key) -> String
) throws {
  let count = try store.count()
  guard count == values.count else {
    throw FuzzFailure("\(count) entries instead of \(values.count)")
  }
  for (key, value) in values {
    guard try store.value(forKey: name(key)) == value else {
      throw FuzzFailure("\(name(key)) does not have the value that was written last")
    }
  }
}

/// Checks that a closed store is sound.
func checkFiles(of path: String) throws {
  let errors = try Store.verify(path: path).errors
  guard errors.isEmpty else { throw FuzzFailure("the store is damaged: \(errors)") }
}
