extension StoreConfiguration {
  /// The same configuration, with the limits that follow from others.
  var resolved: StoreConfiguration {
    // `check` refuses values out of range.
    guard Self.segmentByteLimits.contains(segmentByteLimit) else { return self }
    var resolved = self
    resolved.segmentByteLimit = max(segmentByteLimit, SegmentSize.smallest)
    guard let diskByteLimit, diskByteLimit >= 4 << 20 else { return resolved }
    let segment = max(diskByteLimit / 128, 256 << 10) & ~4095
    resolved.segmentByteLimit = min(resolved.segmentByteLimit, segment)
    resolved.byteLimit = min(byteLimit ?? .max, resolved.liveByteLimit)
    return resolved
  }

  /// How large `diskByteLimit` lets the log become. The rest is for the reserve, the copies of a
  /// round of compaction, the index file and the manifests.
  var logByteLimit: Int {
    guard let diskByteLimit else { return .max }
    return (diskByteLimit - 4 * segmentByteLimit) / 100 * 98
  }

  /// How many of these bytes may be live: what entries need beside their records
  /// (`WriteLimits.entryByteCount`) included.
  var liveByteLimit: Int { diskByteLimit == nil ? .max : logByteLimit / 100 * 95 }

  private static var segmentByteLimits: ClosedRange<Int> { 64 << 10...1 << 30 }

  /// Throws if an option is out of range.
  func check() throws(StoreError) {
    func require(_ holds: Bool, _ option: String, _ reason: String) throws(StoreError) {
      if !holds { throw .invalidConfiguration(option: option, reason: reason) }
    }
    try require(
      Self.segmentByteLimits.contains(segmentByteLimit), "segmentByteLimit",
      "\(segmentByteLimit) is not from 64 KiB to 1 GiB")
    try require(
      (1.1...1000).contains(spaceBound), "spaceBound", "\(spaceBound) is not from 1.1 to 1,000")
    try require(
      (1...65_535).contains(keyByteLimit), "keyByteLimit", "\(keyByteLimit) is not from 1 to 65,535"
    )
    try require(
      (0...Int(UInt32.max)).contains(valueByteLimit), "valueByteLimit",
      "\(valueByteLimit) is not from 0 to 4,294,967,295")
    try require(
      (0...65_535).contains(metadataByteLimit), "metadataByteLimit",
      "\(metadataByteLimit) is not from 0 to 65,535")
    try require(
      (1...1 << 32).contains(batchByteLimit), "batchByteLimit",
      "\(batchByteLimit) is not from 1 to 4 GiB")
    try require(
      countLimit.map { $0 >= 1 } ?? true, "countLimit", "\(countLimit ?? 0); it must be 1 or more")
    try require(
      byteLimit.map { $0 >= 1 } ?? true, "byteLimit",
      "\(byteLimit ?? 0); it must be 1 or more")
    try require(
      diskByteLimit.map { $0 >= 4 << 20 } ?? true, "diskByteLimit",
      "\(diskByteLimit ?? 0); it must be 4 MiB or more")
    try require(
      freeDiskSpaceFloor.map { $0 >= 1 } ?? true, "freeDiskSpaceFloor",
      "\(freeDiskSpaceFloor ?? 0); it must be 1 or more")
    try require(
      maintenanceInterval.map { $0 >= .milliseconds(1) } ?? true, "maintenanceInterval",
      "an interval must be a millisecond or more")
    try require(
      scrubBytesPerSecond.map { $0 >= 1 } ?? true, "scrubBytesPerSecond",
      "\(scrubBytesPerSecond ?? 0); it must be 1 or more")
    if case .interval(let interval) = durability {
      try require(interval > .zero, "durability", "an interval must be positive")
    }
  }
}
