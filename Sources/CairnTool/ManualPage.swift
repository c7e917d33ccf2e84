import CairnStore
import CommandText

/// `help --man`: the help of all commands as a manual page, in the macros of `man`.
enum ManualPage {
  static let text = ([head] + commands + tail).joined(separator: "\n") + "\n"

  private static let head = """
    .TH CAIRN 1 "\(LibraryVersion.date)" "cairn \(LibraryVersion.text)" "User Commands"
    .SH NAME
    cairn \\- read, write, check and repair Cairn stores
    .SH SYNOPSIS
    .B cairn
    .I COMMAND
    .RI [ ARGUMENT ...]
    .RI [ OPTION ...]
    .SH DESCRIPTION
    \(roff(Help.about))
    .SH COMMANDS
    """

  private static var commands: [String] {
    Command.allCases.flatMap { command in
      [".SS " + oneLine("cairn \(command.rawValue) \(command.page.arguments)")]
        + roff(command.page.blocks)
    }
  }

  private static var tail: [String] {
    [".SH OPTIONS", "Every command takes:"] + roff([CommandPage.list(Option.common)])
      + [".SH EXIT STATUS", roff(Help.output)] + roff([Help.statuses])
      + [".SH FILES", "To install the completions and this page:"]
      + roff([Help.installation])
  }

  private static func roff(_ blocks: [Paragraphs.Block]) -> [String] {
    var lines: [String] = []
    for (index, block) in blocks.enumerated() {
      switch block {
      case .text(let text): lines += (index > 0 ? [".PP"] : []) + [roff(text)]
      case .list(let rows):
        for (term, meaning) in rows { lines += [".TP", ".B " + oneLine(term), roff(meaning)] }
      case .examples(let examples):
        lines += [".PP", ".nf", ".RS 4"] + examples.map { "$ " + oneLine($0) } + [".RE", ".fi"]
      }
    }
    return lines
  }

  /// Text for the line of a macro, or for a line that is not filled.
  private static func oneLine(_ text: String) -> String {
    roff(text).replacing("\n", with: " ")
  }

  /// Escapes text for the formatter: no line is read as a request, and dashes can be pasted.
  private static func roff(_ text: String) -> String {
    let escaped = text.replacing("\\", with: "\\e").replacing("-", with: "\\-")
      .replacing("~", with: "\\(ti").replacing("\n", with: " ")
    return broken(escaped, width: 79, indent: 0).map { line in
      line.hasPrefix(".") || line.hasPrefix("'") ? "\\&" + line : line
    }.joined(separator: "\n")
  }
}
