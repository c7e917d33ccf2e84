import CairnStore
import CommandText

/// `completions`: scripts that make a shell complete the command line.
enum Completions {
  enum Shell: String, CaseIterable {
    case bash, zsh, fish
  }

  static func run(_ invocation: Invocation, on console: Console) throws {
    let word = invocation.operands[0]
    guard let shell = Shell(rawValue: String(decoding: word, as: UTF8.self)) else {
      throw invocation.usage("the shell must be bash, zsh or fish, not \(DisplayText.line(word))")
    }
    try console.print(text(for: shell))
  }

  static func text(for shell: Shell) -> String {
    switch shell {
    case .bash: bash
    case .zsh: zsh
    case .fish: fish
    }
  }

  /// What an operand or the value of an option can be.
  private enum Candidates {
    case words([String])
    case directories
    /// The user's own bytes, such as a key.
    case none

    init(operand: String) {
      switch operand {
      case "STORE", "DESTINATION", "DIRECTORY": self = .directories
      case "COMMAND": self = .words(Command.allCases.map(\.rawValue))
      default:
        self =
          operand.contains("|") ? .words(operand.split(separator: "|").map(String.init)) : .none
      }
    }
  }

  private static func options(of command: Command) -> [OptionUse] {
    command.page.options + Option.common
  }

  // MARK: bash

  private static var bash: String {
    let names = Command.allCases.map(\.rawValue)
    let values = Option.allCases.filter { $0.valueName != nil }.map { option in
      "    --\(option.rawValue)) words='\(option.choices.joined(separator: " "))' ;;"
    }
    let valued = Option.allCases.filter { $0.valueName != nil }.map { "--\($0.rawValue)" }
    let commands = Command.allCases.map { command in
      let words = options(of: command).map { "--\($0.option.rawValue)" }.joined(separator: " ")
      let operands = command.page.operandNames.map { operand in
        switch Candidates(operand: operand) {
        case .words(let words): "'\(words.joined(separator: " "))'"
        case .directories: "/"
        case .none: "''"
        }
      }
      return
        "    \(command.rawValue)) options='\(words)'; operands=(\(operands.joined(separator: " "))) ;;"
    }
    return """
      # Completions of cairn for bash.
      _cairn() {
        local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
        local command= count=0 index options= words
        local -a operands=()
        # bash splits --option=value into three words.
        [[ $word == = ]] && word=
        [[ $before == = ]] && before=${COMP_WORDS[COMP_CWORD-2]}
        COMPREPLY=()
        case $before in
      \(values.joined(separator: "\n"))
          *) words=- ;;
        esac
        if [[ $words != - ]]; then
          COMPREPLY=($(compgen -W "$words" -- "$word"))
          return
        fi
        for ((index = 1; index < COMP_CWORD; index++)); do
          case ${COMP_WORDS[index]} in
            \(valued.joined(separator: "|")))
              [[ ${COMP_WORDS[index+1]-} == = ]] && ((index += 1))
              ((index += 1)) ;;
            -*) ;;
            *) if [[ -z $command ]]; then command=${COMP_WORDS[index]}; else ((count += 1)); fi ;;
          esac
        done
        case $command in
          '') options='--help --version --color'; operands=('\(names.joined(separator: " "))') ;;
      \(commands.joined(separator: "\n"))
        esac
        if [[ $word == -* ]]; then
          COMPREPLY=($(compgen -W "$options" -- "$word"))
        elif [[ ${operands[count]-} == / ]]; then
          compopt -o filenames 2> /dev/null || :
          local IFS=$'\\n'
          COMPREPLY=($(compgen -d -- "$word"))
        else
          COMPREPLY=($(compgen -W "${operands[count]-}" -- "$word"))
        fi
      }
      complete -F _cairn cairn
      """
  }

  // MARK: zsh

  private static var zsh: String {
    let names = Command.allCases.map { "      '\($0.rawValue):\(quoted($0.page.summary))'" }
    let commands = Command.allCases.map { command in
      let options = options(of: command).map { use in
        let flag = "--\(use.option.rawValue)"
        let text = quoted(use.summary)
        guard let name = use.option.valueName else { return "'\(flag)[\(text)]'" }
        let choices = use.option.choices
        let action = choices.isEmpty ? " " : "(\(choices.joined(separator: " ")))"
        return "'\(flag)=[\(text)]:\(name):\(action)'"
      }
      let operands = zip(command.page.operands, command.page.operandNames).map { shown, name in
        let action =
          switch Candidates(operand: name) {
          case .words(let words): "(\(words.joined(separator: " ")))"
          case .directories: "_directories"
          case .none: " "
          }
        return "'\(shown.contains("...") ? "*" : ""):\(name):\(action)'"
      }
      let specifications = (options + operands).joined(separator: " \\\n            ")
      return "          \(command.rawValue)) _arguments \(specifications) ;;"
    }
    return """
      #compdef cairn
      # Completions of cairn for zsh.
      _cairn() {
        local curcontext=$curcontext state line
        local -a commands
        commands=(
      \(names.joined(separator: "\n"))
        )
        _arguments -C '(- *)'{-h,--help}'[explain cairn]' '(- *)'{-V,--version}'[show the version]' \\
          '--color=[colour and bold]:WHEN:(\(Option.color.choices.joined(separator: " ")))' \\
          '1:COMMAND:->command' '*::ARGUMENT:->argument'
        case $state in
          command) _describe command commands ;;
          argument)
            case $words[1] in
      \(commands.joined(separator: "\n"))
            esac ;;
        esac
      }
      if [[ ${funcstack[1]} == _cairn ]]; then _cairn "$@"; else compdef _cairn cairn; fi
      """
  }

  /// Escapes text for single quotes, where zsh gives a meaning to colons and square brackets.
  private static func quoted(_ text: String) -> String {
    text.replacing("'", with: "'\\''").replacing(":", with: "\\:").replacing("[", with: "\\[")
      .replacing("]", with: "\\]")
  }

  // MARK: fish

  private static var fish: String {
    var lines = ["# Completions of cairn for fish.", "complete -c cairn -f"]
    func line(_ condition: String, _ rest: String, _ text: String) {
      let text = text.replacing("\\", with: "\\\\").replacing("'", with: "\\'")
      lines.append("complete -c cairn -n '\(condition)' \(rest) -d '\(text)'")
    }
    line("__fish_use_subcommand", "-s V -l version", "show the version")
    for use in Option.common { line("__fish_use_subcommand", flags(use.option), use.summary) }
    for command in Command.allCases {
      let isGiven = "__fish_seen_subcommand_from \(command.rawValue)"
      line("__fish_use_subcommand", "-a \(command.rawValue)", command.page.summary)
      for use in options(of: command) { line(isGiven, flags(use.option), use.summary) }
      for name in command.page.operandNames {
        switch Candidates(operand: name) {
        case .words(let words): line(isGiven, "-a '\(words.joined(separator: " "))'", name)
        case .directories: line(isGiven, "-a '(__fish_complete_directories)'", name)
        case .none: break
        }
      }
    }
    return lines.joined(separator: "\n")
  }

  private static func flags(_ option: Option) -> String {
    let flags = (option == .help ? "-s h " : "") + "-l \(option.rawValue)"
    if option.valueName == nil { return flags }
    return flags + " -x"
      + (option.choices.isEmpty ? "" : " -a '\(option.choices.joined(separator: " "))'")
  }
}
