/// Numbers for people: three digits and a unit.
enum Figures {
  static func rate(_ perSecond: Double) -> String {
    switch perSecond {
    case 999_500...: threeDigits(perSecond / 1e6) + " M/s"
    case 999.5...: threeDigits(perSecond / 1e3) + " k/s"
    default: threeDigits(perSecond) + "  /s"
    }
  }

  static func duration(_ nanoseconds: UInt64) -> String {
    let value = Double(nanoseconds)
    return switch value {
    case 999.5e6...: threeDigits(value / 1e9) + " s "
    case 999.5e3...: threeDigits(value / 1e6) + " ms"
    case 999.5...: threeDigits(value / 1e3) + " µs"
    default: "\(nanoseconds) ns"
    }
  }

  static func bytes(_ count: Int) -> String {
    let value = Double(count)
    return switch count {
    case (1 << 30)...: threeDigits(value / 0x1p30) + " GiB"
    case (1 << 20)...: threeDigits(value / 0x1p20) + " MiB"
    case (1 << 10)...: threeDigits(value / 0x1p10) + " KiB"
    default: "\(count) B"
    }
  }

  static func percent(_ share: Double) -> String { threeDigits(share * 100) + " %" }

  static func ratio(_ value: Double) -> String { threeDigits(value) + " ×" }

  /// With commas between thousands.
  static func count(_ count: Int) -> String {
    var text = ""
    for (place, digit) in String(count).reversed().enumerated() {
      if place > 0, place.isMultiple(of: 3) { text.append(",") }
      text.append(digit)
    }
    return String(text.reversed())
  }

  /// 0.0012, 0.12, 1.23, 12.3, 123, 1234.
  static func threeDigits(_ value: Double) -> String {
    if value > 0, value < 0.095 {
      return value < 0.00095 ? decimal(value, scale: 100_000) : decimal(value, scale: 10_000)
    }
    if value >= 99.95 { return String(Int(value.rounded())) }
    return value >= 9.995 ? decimal(value, scale: 10) : decimal(value, scale: 100)
  }

  private static func decimal(_ value: Double, scale: Int) -> String {
    let scaled = Int((value * Double(scale)).rounded())
    let fraction = String(scaled % scale + scale).dropFirst()
    return "\(scaled / scale).\(fraction)"
  }
}

extension Plan.Section {
  var title: String {
    let (low, high) = (ImageSize.range.lowerBound / 1_000, ImageSize.range.upperBound / 1_000)
    return
      (areImages
      ? "\(Figures.count(keyCount)) images of \(low) to \(high) kB"
      : "\(Figures.count(keyCount)) keys × \(Self.size(valueByteCount))")
      + (threadCount > 1 ? ", \(threadCount) threads" : "")
  }

  static func size(_ byteCount: Int) -> String {
    byteCount >= 1_024 && byteCount.isMultiple(of: 1_024)
      ? "\(byteCount / 1_024) KiB" : "\(byteCount) B"
  }
}
