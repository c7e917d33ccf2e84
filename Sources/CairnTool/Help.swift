import CommandText

/// The output of `cairn help`.
enum Help {
  static let overview = Paragraphs(
    blocks: [
      .text("usage: cairn COMMAND [ARGUMENT...] [OPTION...]"),
      .list(
        Command.allCases.map { command in
          (
            ([command.rawValue] + command.page.operands).joined(separator: " "),
            command.page.summary
          )
        }),
      .text("A first try:"),
      .examples([
        "cairn put notes.cairn greeting hello", "cairn get notes.cairn greeting",
        "cairn stats notes.cairn",
      ]),
      .text(about), .text("Every command takes:"), CommandPage.list(Option.common),
      .text(output), statuses, .text("To install the completions and the manual:"), installation,
    ])

  /// What applies to all commands.
  static let about = """
    STORE is a directory; put, increment, load and import create it if it is missing. get, info,
    keys, dump, stats, top, verify, salvage, backup and export write nothing to it; all of them
    except salvage work while another program has it open, and say so. A command with two
    paths writes to the second. Options may stand anywhere; -- ends them.
    """

  static let output = """
    Results go to standard output, everything else to standard error. --json prints every report
    as JSON, with sizes in bytes, durations in seconds and times in UTC. Long commands show their
    progress, rate and time left on a terminal. The exit status is:
    """

  static let statuses = Paragraphs.Block.list([
    ("0", "done"),
    ("1", "the key does not exist, or put --if-absent has found it"),
    ("2", "the command line is wrong"),
    ("3", "the store is damaged"),
    ("4", "another program has the store open"),
    ("5", "any other error"),
    ("130", "ended by Ctrl-C; other signals give other numbers above 128, as in a shell"),
  ])

  static let installation = Paragraphs.Block.examples([
    "cairn completions bash > ~/.local/share/bash-completion/completions/cairn",
    "cairn completions zsh > ~/.zfunc/_cairn",
    "cairn completions fish > ~/.config/fish/completions/cairn.fish",
    "cairn help --man > ~/.local/share/man/man1/cairn.1",
  ])

  static func page(for command: Command) -> Paragraphs {
    Paragraphs(blocks: [.text(usage(of: command))] + command.page.blocks)
  }

  /// The synopsis of a command, on one line.
  static func usage(of command: Command) -> String {
    "usage: cairn \(command.rawValue) \(command.page.arguments)"
  }
}
