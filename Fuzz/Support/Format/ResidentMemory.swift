import CairnLibC

/// The memory of this process that is in use.
package enum ResidentMemory {
  /// The maximum number of bytes that were ever resident.
  package static var peak: Int {
    var usage = rusage()
    #if canImport(Darwin)
      unsafe getrusage(RUSAGE_SELF, &usage)
      return usage.ru_maxrss
    #else
      unsafe getrusage(RUSAGE_SELF.rawValue, &usage)
      return usage.ru_maxrss * 1024
    #endif
  }
}
