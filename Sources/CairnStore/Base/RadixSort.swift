extension Array where Element: BitwiseCopyable {
  /// Sorts by each element's number. The sort is stable.
  ///
  /// - Complexity: O(n) for each group of 11 bits in which the numbers differ. Takes memory for
  ///   another n elements.
  mutating func sortByRadix(of number: (Element) -> UInt64) {
    if count < 2 { return }
    let first = number(self[0])
    var differing: UInt64 = 0
    for element in self { differing |= number(element) ^ first }
    var other = self
    var shift: UInt64 = 0
    while shift < 64, differing >> shift != 0 {
      defer { shift += 11 }
      if differing >> shift & 0x7FF == 0 { continue }
      var places = [Int](repeating: 0, count: 2048)
      for element in self { places[Int(number(element) >> shift & 0x7FF)] += 1 }
      var place = 0
      for digit in places.indices {
        let digitCount = places[digit]
        places[digit] = place
        place += digitCount
      }
      for element in self {
        let digit = Int(number(element) >> shift & 0x7FF)
        other[places[digit]] = element
        places[digit] += 1
      }
      swap(&self, &other)
    }
  }
}
