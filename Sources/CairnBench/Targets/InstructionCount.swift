/// Instructions of one operation, counted by callgrind: the same on every machine with the same toolchain.
enum InstructionCount {
  private static let operationCount = 2_000

  /// `nil` if valgrind is not installed.
  static func of(_ operation: OperationRun, in directory: String) throws -> Int? {
    let result = "\(directory)/callgrind.out"
    let isFound = try ChildRun.run(
      [
        "valgrind", "--tool=callgrind", "--callgrind-out-file=\(result)",
        "--toggle-collect=*countedOperations*", ChildRun.program, OperationRun.argument,
        operation.rawValue, "\(operationCount)", directory,
      ], output: "\(directory)/valgrind")
    guard isFound else { return nil }
    guard let total = total(ProcFile.text(result)) else {
      throw BenchFailure.unsuited("no total in the result of callgrind for \(operation.rawValue)")
    }
    return total / operationCount
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
