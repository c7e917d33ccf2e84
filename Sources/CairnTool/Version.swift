import CairnStore
import CommandText

/// `version`, and the only place that has the version of the library and its commands.
enum Version {
  static let text = "0.1.0"
  /// The day of the version, in the manual.
  static let date = "November 26, 2026"

  static func run(_ invocation: Invocation, on console: Console) throws {
    let formats = "\(FormatVersion.major).x"
    if invocation.has(.json) {
      try console.print(
        JSON.object([
          ("version", .string(text)),
          ("writesFormat", .string(FormatVersion.text)),
          ("readsFormats", .array([.string(formats)])),
        ]).text)
    } else {
      try console.tell("cairn \(text)")
      try console.tell("writes file format \(FormatVersion.text)")
      try console.tell("reads file formats \(formats)")
    }
  }
}
