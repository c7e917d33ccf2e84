import CairnStore
import Testing

@testable import Cairn

// Calls of every kind, and what is timed in each.
extension DiskSlowCallTests {
  /// A call, and what the cache times in it.
  struct Call: Sendable, CustomTestStringConvertible {
    let name: String
    let timed: [CacheOperation]
    let body: @Sendable (Cache) async throws -> Void

    init(
      _ name: String, _ timed: CacheOperation...,
      body: @escaping @Sendable (Cache) async throws -> Void
    ) {
      (self.name, self.timed, self.body) = (name, timed, body)
    }

    var testDescription: String { name }
  }

  static let options = EntryOptions(lifetime: .seconds(60), tags: ["t"])

  /// Each call finds "a" and "b", and does not find "absent".
  static let calls: [Call] = [
    Call("value", .read) { _ = try $0.value(forKey: "a") },
    Call("value of an absent key", .read) { _ = try $0.value(forKey: "absent") },
    Call("subscript", .read) { _ = $0["a"] },
    Call("values", .read, .read) { _ = try $0.values(forKeys: ["a", "b"]) },
    Call("entry", .read) { _ = try $0.entry(forKey: "a") },
    Call("info", .read) { _ = try $0.info(forKey: "a") },
    Call("metadata", .read) { _ = try $0.metadata(forKey: "a") },
    Call("contains", .read) { _ = try $0.contains("a") },
    Call("withValue", .read) { _ = try $0.withValue(forKey: "a") { _ in } },
    Call("peekValue", .read) { _ = try $0.peekValue(forKey: "a") },
    Call("a value that is loaded if absent", .read) {
      _ = try await $0.value(forKey: "a") { "" }
    },
    Call("a load", .read, .read, .load) {
      _ = try await $0.value(forKey: "c") { "" }
    },
    Call("setValue", .write) {
      _ = try $0.synchronous { try $0.setValue("1", forKey: "a") }
    },
    Call("setValue, async", .write) { _ = try await $0.setValue("1", forKey: "a") },
    Call("setValue, durable, async", .write) {
      _ = try await $0.setValue("1", forKey: "a", durability: .durable)
    },
    Call("subscript, set", .write) { $0["a"] = "1" },
    Call("compareAndSet", .write) {
      _ = try $0.synchronous { try $0.compareAndSet("1", forKey: "a", expecting: nil) }
    },
    Call("compareAndSet, async", .write) {
      _ = try await $0.compareAndSet("1", forKey: "a", expecting: nil)
    },
    Call("update", .read, .write) {
      _ = try $0.synchronous { try $0.update(forKey: "a") { _ in "1" } }
    },
    Call("update, async, to nothing", .read, .removal) {
      _ = try await $0.update(forKey: "a") { _ in nil }
    },
    Call("setLifetime", .write) {
      _ = try $0.synchronous { try $0.setLifetime(.seconds(90), forKey: "a") }
    },
    Call("setLifetime, async", .write) {
      _ = try await $0.setLifetime(.seconds(90), forKey: "a")
    },
    Call("removeValue", .removal) {
      _ = try $0.synchronous { try $0.removeValue(forKey: "a") }
    },
    Call("removeValue, async", .removal) { _ = try await $0.removeValue(forKey: "a") },
    Call("compareAndRemove", .removal) {
      _ = try $0.synchronous { try $0.compareAndRemove(forKey: "a", expecting: 1) }
    },
    Call("compareAndRemove, async", .removal) {
      _ = try await $0.compareAndRemove(forKey: "a", expecting: 1)
    },
    Call("takeValue", .read, .removal) {
      _ = try $0.synchronous { try $0.takeValue(forKey: "a") }
    },
    Call("takeValue, async", .read, .removal) {
      _ = try await $0.takeValue(forKey: "a")
    },
    Call("removeValues", .removal) {
      _ = try $0.synchronous { try $0.removeValues(forKeys: ["a", "b"]) }
    },
    Call("removeValues, async", .removal) {
      _ = try await $0.removeValues(forKeys: ["a", "b"])
    },
    Call("write", .batch) {
      try $0.synchronous { try $0.write { try $0.setValue("1", forKey: "a") } }
    },
    Call("write, async", .batch) {
      try await $0.write { try $0.removeValue(forKey: "a") }
    },
    Call("setValues", .batch) {
      try $0.synchronous { try $0.setValues([(key: "a", value: "1"), (key: "b", value: "2")]) }
    },
    Call("setValues, async", .batch) {
      try await $0.setValues([(key: "a", value: "1")])
    },
    Call("removeAll", .removal) { try $0.synchronous { try $0.removeAll() } },
    Call("removeAll, async", .removal) { try await $0.removeAll() },
    Call("removeAll of a tag", .removal) {
      try $0.synchronous { try $0.removeAll(tagged: "t") }
    },
    Call("removeAll of a tag, async", .removal) { try await $0.removeAll(tagged: "t") },
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
