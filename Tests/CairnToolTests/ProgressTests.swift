import Cairn
import CairnTool
import Testing

@Suite("Progress")
struct ProgressTests {
  @Test func `a line has bytes, share, rate and the time left`() {
    let (mebibyte, gibibyte) = (1 << 20, 1 << 30)
    #expect(
      Progress.line("imported", byteCount: gibibyte, of: 4 * gibibyte, after: .seconds(10))
        == "imported 1.0 GiB of 4.0 GiB, 25 %, 102.4 MiB/s, 30 s left")
    #expect(
      Progress.line("copied", byteCount: 5 * mebibyte, of: nil, after: .seconds(2))
        == "copied 5.0 MiB, 2.5 MiB/s")
    // Parts that say little are left out.
    #expect(
      Progress.line("checked", byteCount: mebibyte, of: gibibyte, after: .milliseconds(200))
        == "checked 1.0 MiB of 1.0 GiB, 0 %, 5.0 MiB/s")
    #expect(
      Progress.line("exported", byteCount: 0, of: 0, after: .zero) == "exported 0 B of 0 B, 0 B/s")
    #expect(
      Progress.line("imported", byteCount: 3, of: 2, after: .seconds(1))
        == "imported 3 B of 2 B, 100 %, 3 B/s, 0 s left")
  }

  @Test func `an export shows bytes, with those of values that are encoded`() throws {
    let directory = try TemporaryDirectory()
    let store = try Store(path: directory("store"))
    try store.write { batch in
      for number in 0..<6000 {
        try batch.setValue([UInt8](repeating: 1, count: 1024), forKey: "key \(number)")
        try batch.setValue([UInt8](repeating: 1, count: 1024), forKey: "../key \(number)")
      }
    }
    try store.close()
    let text = try PseudoTerminal(columns: 100)
      .cairn("export", directory("store"), directory("out"))
    let pattern = #/exported [0-9.]+ (B|KiB|MiB) of 11\.7 MiB, [0-9]+ %, [0-9.]+ [KM]iB\/s/#
    #expect(text.contains(pattern), "\(text)")
    #expect(text.hasSuffix("; 6,000 keys encoded in .cairn-encoded\r\n"))
  }
}
