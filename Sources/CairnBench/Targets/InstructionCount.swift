/// The instructions of one operation, counted by callgrind. The counts are the same on every
/// machine with the same toolchain.
enum InstructionCount {
  /// The count of each operation, or the package that must be installed to count.
  enum Outcome: Equatable {
    case counted([OperationRun: Int])
    case needs(package: String)
  }

  static func of(
    _ operations: [OperationRun], times: Int = 2_000, program: String = ChildRun.program,
    in directory: String
  ) throws -> Outcome {
    let (copy, result) = ("\(directory)/stripped", "\(directory)/callgrind.out")
    let output = "\(directory)/output"
    // Valgrind does not understand Swift's debug information.
    guard try ChildRun.run(["strip", "--strip-debug", "-o", copy, program], output: output) else {
      return .needs(package: "binutils")
    }
    var counts: [OperationRun: Int] = [:]
    for operation in operations {
      let command = [
        "valgrind", "--tool=callgrind", "--callgrind-out-file=\(result)",
        "--toggle-collect=*countedOperations*", copy, OperationRun.argument, operation.rawValue,
        "\(times)", directory,
      ]
      guard try ChildRun.run(command, output: output) else { return .needs(package: "valgrind") }
      guard let total = total(ProcFile.text(result)) else {
        throw BenchFailure.unsuited("callgrind gave no total for \(operation.rawValue)")
      }
      counts[operation] = total / times
    }
    return .counted(counts)
  }

  static func total(_ result: String) -> Int? {
    for line in result.split(separator: "\n") {
      for prefix in ["summary: ", "totals: "] where line.hasPrefix(prefix) {
        return Int(line.dropFirst(prefix.count))
      }
    }
    return nil
  }
}
