/// Maps keys to paths in a tree and back.
///
/// A key that is a relative path is the path of its file. A key that ends in `/` and has an empty
/// value names an empty directory, because no file name can end like that. Any other key is
/// *encoded*: its file is in the directory `.cairn-encoded` at the top of the tree, which no plain
/// path may enter.
///
///     key       ../up                    "x" × 450
///     encoded   %2E%2E%2Fup              the same
///     path      .cairn-encoded/          .cairn-encoded/x…x+/x…x+/x…x
///               %2E%2E%2Fup                     200    200    50
///
/// No two keys share a path, and none needs a directory where another has its file:
/// - Percent-encoding is reversible, so each key has a different encoded text.
/// - The text is cut into names of 200 bytes, and every name but the last gets a `+`, which the
///   text never contains. So a directory's name is never a file's name, and the names, joined
///   without the `+`, give the text.
/// - Plain paths and encoded ones differ in their first name.
package enum TreePath {
  /// The directory of the encoded keys.
  package static let encodedDirectory = Array(".cairn-encoded".utf8)
  private static let encodedNameByteCount = 200
  private static let slash = UInt8(ascii: "/")
  private static let plus = UInt8(ascii: "+")

  /// Whether a key can be the path of its own file or empty directory.
  package static func isPlain(_ key: [UInt8], valueIsEmpty: Bool) -> Bool {
    var names = key.split(separator: slash, omittingEmptySubsequences: false)
    if names.count > 1, names.last?.isEmpty == true, valueIsEmpty { names.removeLast() }
    guard let first = names.first, !first.elementsEqual(encodedDirectory) else { return false }
    return names.allSatisfy { name in
      !name.isEmpty && name.count <= SystemCalls.nameByteLimit && !name.contains(0)
        && !name.elementsEqual(".".utf8) && !name.elementsEqual("..".utf8)
    }
  }

  /// The names on the path to the file of an encoded key, from the top of the tree.
  package static func encodedNames(of key: [UInt8]) -> [[UInt8]] {
    var names = [encodedDirectory]
    var rest = PercentEncoding.encode(key)[...]
    while rest.count > encodedNameByteCount {
      names.append(rest.prefix(encodedNameByteCount) + [plus])
      rest = rest.dropFirst(encodedNameByteCount)
    }
    names.append(Array(rest))
    return names
  }

  /// The key whose file has this path below the top of the tree, or `nil` if it is not the path of
  /// an encoded key.
  package static func key(ofEncodedPath path: [UInt8]) -> [UInt8]? {
    let names = path.split(separator: slash, omittingEmptySubsequences: false)
    guard names.count > 1, names[0].elementsEqual(encodedDirectory) else { return nil }
    let text = names.dropFirst().flatMap { $0.last == plus ? $0.dropLast() : $0 }
    let key = PercentEncoding.decode(text)
    // Names that an export would not write are taken literally.
    let canonical = encodedNames(of: key)
    guard canonical.count == names.count,
      zip(canonical, names).allSatisfy({ $0.elementsEqual($1) })
    else { return nil }
    return key
  }
}
