import CairnStore
import Testing

@testable import Cairn

// Calls of every kind, and what each leaves in the log.
extension DiskSlowCallTests {
  /// What a call does to the log.
  struct Kept: Hashable, CustomStringConvertible {
    var operation: CacheOperation
    var key: String?

    init(_ operation: CacheOperation, _ key: String? = "a") {
      (self.operation, self.key) = (operation, key)
    }

    init(_ call: SlowCall<String>) { self.init(call.operation, call.key) }

    var description: String { "\(operation.rawValue) \(key ?? "-")" }
  }

  /// A call, and what it leaves in the log if the threshold is zero.
  struct Call: Sendable, CustomTestStringConvertible {
    let name: String
    let kept: [Kept]
    let body: @Sendable (Cache) async throws -> Void

    init(_ name: String, _ kept: Kept..., body: @escaping @Sendable (Cache) async throws -> Void) {
      (self.name, self.kept, self.body) = (name, kept, body)
    }

    var testDescription: String { name }
  }

  static let options = EntryOptions(lifetime: .seconds(60), tags: ["t"])

  /// Each call finds "a" and "b", and does not find "absent".
  static let calls: [Call] = [
    Call("value", Kept(.read)) { _ = try $0.value(forKey: "a") },
    Call("value of an absent key", Kept(.read, "absent")) { _ = try $0.value(forKey: "absent") },
    Call("subscript", Kept(.read)) { _ = $0["a"] },
    Call("values", Kept(.read), Kept(.read, "b")) { _ = try $0.values(forKeys: ["a", "b"]) },
    Call("entry", Kept(.read)) { _ = try $0.entry(forKey: "a") },
    Call("info", Kept(.read)) { _ = try $0.info(forKey: "a") },
    Call("metadata", Kept(.read)) { _ = try $0.metadata(forKey: "a") },
    Call("contains", Kept(.read)) { _ = try $0.contains("a") },
    Call("withValue", Kept(.read)) { _ = try $0.withValue(forKey: "a") { _ in } },
    Call("peekValue", Kept(.read)) { _ = try $0.peekValue(forKey: "a") },
    Call("a value that is loaded if absent", Kept(.read)) {
      _ = try await $0.value(forKey: "a") { "" }
    },
    Call("a load", Kept(.read, "c"), Kept(.read, "c"), Kept(.load, "c")) {
      _ = try await $0.value(forKey: "c") { "" }
    },
    Call("setValue", Kept(.write)) {
      _ = try $0.synchronous { try $0.setValue("1", forKey: "a") }
    },
    Call("setValue, async", Kept(.write)) { _ = try await $0.setValue("1", forKey: "a") },
    Call("setValue, durable, async", Kept(.write)) {
      _ = try await $0.setValue("1", forKey: "a", durability: .durable)
    },
    Call("subscript, set", Kept(.write)) { $0["a"] = "1" },
    Call("compareAndSet", Kept(.write)) {
      _ = try $0.synchronous { try $0.compareAndSet("1", forKey: "a", expecting: nil) }
    },
    Call("compareAndSet, async", Kept(.write)) {
      _ = try await $0.compareAndSet("1", forKey: "a", expecting: nil)
    },
    Call("update", Kept(.read), Kept(.write)) {
      _ = try $0.synchronous { try $0.update(forKey: "a") { _ in "1" } }
    },
    Call("update, async, to nothing", Kept(.read), Kept(.removal)) {
      _ = try await $0.update(forKey: "a") { _ in nil }
    },
    Call("extendLifetime", Kept(.write)) {
      _ = try $0.synchronous { try $0.extendLifetime(forKey: "a", to: .seconds(90)) }
    },
    Call("extendLifetime, async", Kept(.write)) {
      _ = try await $0.extendLifetime(forKey: "a", to: .seconds(90))
    },
    Call("removeValue", Kept(.removal)) {
      _ = try $0.synchronous { try $0.removeValue(forKey: "a") }
    },
    Call("removeValue, async", Kept(.removal)) { _ = try await $0.removeValue(forKey: "a") },
    Call("compareAndRemove", Kept(.removal)) {
      _ = try $0.synchronous { try $0.compareAndRemove(forKey: "a", expecting: 1) }
    },
    Call("compareAndRemove, async", Kept(.removal)) {
      _ = try await $0.compareAndRemove(forKey: "a", expecting: 1)
    },
    Call("takeValue", Kept(.read), Kept(.removal)) {
      _ = try $0.synchronous { try $0.takeValue(forKey: "a") }
    },
    Call("takeValue, async", Kept(.read), Kept(.removal)) {
      _ = try await $0.takeValue(forKey: "a")
    },
    Call("removeValues", Kept(.removal, nil)) {
      _ = try $0.synchronous { try $0.removeValues(forKeys: ["a", "b"]) }
    },
    Call("removeValues, async", Kept(.removal, nil)) {
      _ = try await $0.removeValues(forKeys: ["a", "b"])
    },
    Call("write", Kept(.batch, nil)) {
      try $0.synchronous { try $0.write { try $0.setValue("1", forKey: "a") } }
    },
    Call("write, async", Kept(.batch, nil)) {
      try await $0.write { try $0.removeValue(forKey: "a") }
    },
    Call("setValues", Kept(.batch, nil)) {
      try $0.synchronous { try $0.setValues([(key: "a", value: "1"), (key: "b", value: "2")]) }
    },
    Call("setValues, async", Kept(.batch, nil)) {
      try await $0.setValues([(key: "a", value: "1")])
    },
    Call("removeAll", Kept(.removal, nil)) { try $0.synchronous { try $0.removeAll() } },
    Call("removeAll, async", Kept(.removal, nil)) { try await $0.removeAll() },
    Call("removeAll of a tag", Kept(.removal, nil)) {
      try $0.synchronous { try $0.removeAll(tagged: "t") }
    },
    Call("removeAll of a tag, async", Kept(.removal, nil)) { try await $0.removeAll(tagged: "t") },
    Call("what is not timed") {
      _ = try $0.count()
      _ = try $0.keys()
      try $0.forEachEntry { _ in .next }
      _ = try await $0.trim(.toCount(1))
      _ = try await $0.compact()
      try await $0.sync()
    },
  ]
}
