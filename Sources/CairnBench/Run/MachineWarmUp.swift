import CairnLibC

/// Touches memory once before anything is measured. The first touch of a page can cost ten times as
/// much on a virtual machine whose host has reclaimed free memory, and the first store would pay
/// for that.
enum MachineWarmUp {
  static func touchMemory(availableByteCount: Int) {
    let byteCount = min(2 << 30, availableByteCount / 4)
    guard byteCount > 0 else { return }
    // SAFETY: one byte of every page inside the mapping is written, then it is unmapped.
    let address = unsafe mmap(
      nil, byteCount, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    guard let address = unsafe address, unsafe address != MAP_FAILED else { return }
    for offset in stride(from: 0, to: byteCount, by: 4_096) {
      unsafe address.storeBytes(of: 1, toByteOffset: offset, as: UInt8.self)
    }
    unsafe munmap(address, byteCount)
  }
}
