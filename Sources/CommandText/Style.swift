/// The emphasis of a part of a line.
package enum Style: String, Sendable {
  case heading = "1"
  case error = "1;31"
  case warning = "33"
  /// The most important part of a bar.
  case bar = "32"
  /// The rest of a bar.
  case faint = "2"
}

/// Adds colour and bold to text, or leaves it as it is.
///
/// Paint only the program's own text, or text that `DisplayText.line` has escaped: a terminal obeys
/// the escapes in painted text.
package struct Painter: Sendable {
  package let isOn: Bool

  package init(isOn: Bool) { self.isOn = isOn }

  package func callAsFunction(_ text: some StringProtocol, _ style: Style?) -> String {
    guard isOn, let style, !text.isEmpty else { return String(text) }
    return "\u{1B}[\(style.rawValue)m\(text)\u{1B}[0m"
  }
}

/// When to use colour and bold.
package enum ColorChoice: String, CaseIterable, Sendable {
  /// On a terminal, unless the environment says otherwise.
  case auto
  case always, never

  /// The painter for text that is written to a descriptor.
  ///
  /// `auto` follows the conventions of no-color.org and bixense.com/clicolors: NO_COLOR takes
  /// precedence, then CLICOLOR_FORCE, then the terminal, CLICOLOR and TERM.
  package func painter(for descriptor: Int32) -> Painter {
    switch self {
    case .always: return Painter(isOn: true)
    case .never: return Painter(isOn: false)
    case .auto:
      if Terminal.variable("NO_COLOR") != nil { return Painter(isOn: false) }
      if let forced = Terminal.variable("CLICOLOR_FORCE"), forced != "0" {
        return Painter(isOn: true)
      }
      return Painter(
        isOn: Terminal.isTerminal(descriptor) && Terminal.variable("CLICOLOR") != "0"
          && Terminal.variable("TERM") != nil && !Terminal.isDumb)
    }
  }
}
