import CairnLibC
import Testing

private func isInstalled(_ program: String) -> Bool { unsafe access(program, X_OK) == 0 }

@Suite("Completions and the manual")
struct CompletionTests {
  let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
    try directory.makeDirectory("notes.cairn")
    try directory.makeDirectory("photos.cairn")
    try directory.makeFile("file", [])
  }

  /// Runs a script that gets the completions as its first argument.
  private func run(
    _ shell: String, _ options: [String], _ script: String, _ arguments: [String]
  ) throws -> ChildProcess.Outcome {
    let name = shell.split(separator: "/").last.map(String.init) ?? ""
    try directory.makeFile(name, cairn("completions", name).output)
    try directory.makeFile("script", Array(script.utf8))
    return try ChildProcess.run(
      shell,
      (options + [directory("script"), directory(name)] + arguments).map { Array($0.utf8) },
      environment: ["PATH=/usr/bin:/bin", "HOME=\(directory.path)", "TERM=xterm"])
  }

  @Test(arguments: [
    ("ke", ["keys"]), ("keys --l", ["--long", "--limit"]), ("keys --color a", ["auto", "always"]),
    ("keys --color = n", ["never"]), ("version store --", ["--color", "--help", "--json"]),
    ("--color never exp", ["expire", "export"]), ("keys --limit 3 no", ["notes.cairn"]),
    ("backup notes.cairn ph", ["photos.cairn"]), ("get notes.cairn ph", []),
    ("help ver", ["verify", "version"]), ("completions ", ["bash", "zsh", "fish"]),
    ("trim notes.cairn --order ", ["lru", "largest"]), ("get --key-format e", ["escaped"]),
    ("import --decode = p", ["percent"]),
    ("keys --prefix no", []), ("--", ["--help", "--version", "--color"]), ("", Command.names),
  ])
  func `bash completes`(line: String, expected: [String]) throws {
    let script = """
      set -u
      source "$1"
      [[ $(complete -p cairn) == 'complete -F _cairn cairn' ]]
      cd "$2"
      COMP_WORDS=("${@:3}")
      COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
      _cairn
      for word in ${COMPREPLY[@]+"${COMPREPLY[@]}"}; do echo "$word"; done
      """
    let typed = line.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
    let outcome = try run("/bin/bash", [], script, [directory.path, "cairn"] + typed)
    #expect(outcome.status == 0 && outcome.errors.isEmpty, "\(outcome.errors)")
    #expect(outcome.lines.sorted() == expected.sorted())
  }

  @Test(
    .enabled(if: isInstalled("/usr/bin/fish"), "fish is not installed"),
    arguments: [
      ("ke", ["keys"]), ("keys --l", ["--limit", "--long"]), ("keys --color al", ["always"]),
      ("help ver", ["verify", "version"]), ("trim notes.cairn --order ", ["largest", "lru"]),
      ("keys no", ["notes.cairn/"]),
    ])
  func `fish completes`(line: String, expected: [String]) throws {
    let script = """
      source $argv[1]
      cd $argv[2]
      complete -C "cairn $argv[3]"
      """
    let outcome = try run("/usr/bin/fish", ["--no-config"], script, [directory.path, line])
    #expect(outcome.status == 0 && outcome.errors.isEmpty, "\(outcome.errors)")
    let found = outcome.lines.map { String($0.prefix { $0 != "\t" }) }
    #expect(found.sorted() == expected.sorted())
  }

  @Test(
    .enabled(if: isInstalled("/usr/bin/zsh"), "zsh is not installed"),
    arguments: [
      ("ke", "keys "), ("keys --tr", "keys --tree "), ("keys --color=al", "keys --color=always "),
      ("completions f", "completions fish "), ("keys no", "keys notes.cairn/"),
      ("trim s --order la", "trim s --order largest "), ("salvage x ph", "salvage x photos.cairn/"),
    ])
  func `zsh completes`(line: String, expected: String) throws {
    // Another zsh, on a terminal, completes the line and writes the result.
    let script = """
      zmodload zsh/zpty
      cd $2
      cat > setup <<END
      PS1= PROMPT_EOL_MARK=
      autoload -Uz compinit && compinit -u -D
      source $1
      show() { print -r -- \\$BUFFER > $2/buffer; exit }
      zle -N show
      bindkey '^X' show
      bindkey '^I' complete-word
      END
      zpty terminal zsh -f -i
      zpty -w terminal 'source ./setup'
      zpty -w -n terminal "cairn $3"$'\\t\\x18'
      while zpty -r terminal line; do :; done
      cat buffer
      """
    let outcome = try run("/usr/bin/zsh", ["-f"], script, [directory.path, line])
    #expect(outcome.text == "cairn \(expected)\n", "\(outcome.errors)")
  }

  @Test(
    .enabled(if: isInstalled("/usr/bin/groff"), "groff is not installed"))
  func `groff takes the manual`() throws {
    try directory.makeFile("cairn.1", cairn("help", "--man").output)
    let outcome = try ChildProcess.run(
      "/usr/bin/groff",
      ["-man", "-ww", "-Tascii", "-P-cbou", directory("cairn.1")].map { Array($0.utf8) },
      environment: ["PATH=/usr/bin:/bin"])
    #expect(outcome.status == 0)
    #expect(outcome.errors.isEmpty, "\(outcome.errors)")
    for command in Command.names {
      let heads = outcome.lines.filter { $0.hasPrefix("   cairn ") }.map(words)
      #expect(heads.contains { $0.hasPrefix("cairn \(command)") }, "\(command)")
    }
    let text = words(outcome.text)
    #expect(text.contains("$ cairn trim photos.cairn --older-than 30d"))
    #expect(text.contains(#"is shown as \\. Bytes that are not UTF-8"#))
    #expect(text.contains("EXIT STATUS"))
  }

  @Test(.enabled(if: isInstalled("/usr/bin/mandoc"), "mandoc is not installed"))
  func `mandoc finds nothing to say about the manual`() throws {
    let outcome = try ChildProcess.run(
      "/usr/bin/mandoc", ["-Tlint", "-Wstyle"].map { Array($0.utf8) },
      input: cairn("help", "--man").output)
    #expect(outcome.status == 0)
    #expect(outcome.text.isEmpty, "\(outcome.text)")
  }
}
