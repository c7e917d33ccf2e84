internal import CairnEssentials
internal import CairnLibC

/// The path of this program's file, or `nil` if it is unknown.
func programPath() -> String? {
  #if canImport(Darwin)
    var text = [CChar](repeating: 0, count: 4096)
    var count = UInt32(text.count)
    // SAFETY: the buffer has this size.
    guard unsafe _NSGetExecutablePath(&text, &count) == 0 else { return nil }
    return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  #else
    return try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
  #endif
}
