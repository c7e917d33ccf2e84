import Foundation

extension Double {
  func power(_ exponent: Double) -> Double { pow(self, exponent) }
}
