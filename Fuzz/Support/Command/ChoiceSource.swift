/// The source of decisions: random numbers, the bytes of a coverage-guided fuzzer, or a search that
/// tries all decisions in turn.
package protocol ChoiceSource {
  /// A number in `0..<bound`; `bound` is at least 1.
  mutating func below(_ bound: Int) -> Int
  /// Whether all further decisions are the same.
  var isAtEnd: Bool { get }
}

extension ChoiceSource {
  package var isAtEnd: Bool { false }

  /// `true` one time in `count`.
  package mutating func once(in count: Int) -> Bool { below(count) == 0 }

  package mutating func element<Element>(of elements: [Element]) -> Element {
    elements[below(elements.count)]
  }
}

/// Decisions from bytes, one or two bytes each. Past the end, every decision is 0.
package struct ByteChoices: ChoiceSource {
  private let bytes: [UInt8]
  private var offset = 0

  package init(_ bytes: [UInt8]) { self.bytes = bytes }

  package var isAtEnd: Bool { offset >= bytes.count }

  private mutating func byte() -> Int {
    guard offset < bytes.count else { return 0 }
    defer { offset += 1 }
    return Int(bytes[offset])
  }

  package mutating func below(_ bound: Int) -> Int {
    if bound <= 1 { return 0 }
    var number = byte()
    var range = 256
    while range < bound {
      number = number << 8 | byte()
      range <<= 8
    }
    return number % bound
  }
}
