@main
enum DamageFuzzer {
  static func main() {}
}
