import CairnStore
import CommandText

/// `version`.
enum Version {
  static func run(_ invocation: Invocation, on console: Console) throws {
    let formats = "\(FormatVersion.major).x"
    if invocation.has(.json) {
      try console.print(
        JSON.object([
          ("version", .string(LibraryVersion.text)),
          ("writesFormat", .string(FormatVersion.text)),
          ("readsFormats", .array([.string(formats)])),
        ]).text)
    } else {
      try console.tell("cairn \(LibraryVersion.text)")
      try console.tell("writes file format \(FormatVersion.text)")
      try console.tell("reads file formats \(formats)")
    }
  }
}
