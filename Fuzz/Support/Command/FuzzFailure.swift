/// Something that must hold and did not.
package struct FuzzFailure: Error, CustomStringConvertible {
  package var description: String

  package init(_ description: String) { self.description = description }
}
