/// A function of bytes that a fuzzer calls, by name. It throws if a condition does not hold.
/// Refusing invalid bytes is not a failure.
package struct FuzzTarget: Sendable {
  package let name: String
  package let run: @Sendable ([UInt8]) throws -> Void

  package init(name: String, run: @escaping @Sendable ([UInt8]) throws -> Void) {
    self.name = name
    self.run = run
  }

  /// All targets. Each has a folder of its name in Fuzz/Corpus.
  package static let all = [
    FuzzTarget(name: "manifest") { try ManifestCheck.check($0) },
    FuzzTarget(name: "segment-header") { try SegmentHeaderCheck.check($0) },
    FuzzTarget(name: "record") { try RecordCheck.check($0) },
    FuzzTarget(name: "segment") { try SegmentCheck.check($0) },
    FuzzTarget(name: "checkpoint") { try CheckpointCheck.check($0) },
    FuzzTarget(name: "metadata") { try CacheRecordCheck.check($0) },
    FuzzTarget(name: "operations") {
      try CrashRun(ByteChoices($0), cutInterval: 30).run(operationCount: 60)
    },
  ]

  package static func named(_ name: String) -> FuzzTarget? { all.first { $0.name == name } }
}
