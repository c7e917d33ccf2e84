/// Decides what a power cut leaves on the disk.
package protocol CutChooser {
  /// Which of a sector's states exists: 0 is the state at the last sync, and the last is the
  /// newest.
  mutating func version(of count: Int) -> Int
  /// Whether the cut interrupts a write to the sector.
  mutating func tearsSector() -> Bool
  mutating func keepsOldWord() -> Bool
  /// Which of a file's lengths exists, in the same order.
  mutating func length(of count: Int) -> Int
  /// Whether an unsynced change of a directory reached the disk.
  mutating func persistsName() -> Bool
  /// Whether a sector that was never written contains old data.
  mutating func fillsUnwritten() -> Bool
  mutating func junk(of count: Int) -> Int
  /// Whether unwritten space is filled at all.
  mutating func isHostile() -> Bool
}

/// Random cuts. Each cut first draws a style, because states in which nearly everything or nearly
/// nothing arrived are as revealing as even mixtures.
package struct RandomCut<Choices: ChoiceSource>: CutChooser {
  private enum Style: CaseIterable {
    case even, newest, oldest, mostlyNewest, mostlyOldest
  }

  package var choices: Choices
  private let style: Style
  private let nameStyle: Style
  private let tears: Bool
  private let hostile: Bool

  package init(_ choices: Choices) {
    var choices = choices
    style = choices.element(of: Style.allCases)
    nameStyle = choices.element(of: Style.allCases)
    tears = choices.once(in: 4)
    hostile = choices.once(in: 4)
    self.choices = choices
  }

  private mutating func choose(_ count: Int, _ style: Style) -> Int {
    switch style {
    case .even: choices.below(count)
    case .newest: count - 1
    case .oldest: 0
    case .mostlyNewest: choices.once(in: 6) ? choices.below(count) : count - 1
    case .mostlyOldest: choices.once(in: 6) ? choices.below(count) : 0
    }
  }

  package mutating func version(of count: Int) -> Int { choose(count, style) }
  package mutating func tearsSector() -> Bool { tears && choices.once(in: 4) }
  package mutating func keepsOldWord() -> Bool { choices.once(in: 2) }
  package mutating func length(of count: Int) -> Int { choose(count, style) }
  package mutating func persistsName() -> Bool { choose(2, nameStyle) == 1 }
  package mutating func fillsUnwritten() -> Bool { choices.once(in: 2) }
  package mutating func junk(of count: Int) -> Int { choices.below(count) }
  package mutating func isHostile() -> Bool { hostile }
}
