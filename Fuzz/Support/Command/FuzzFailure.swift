/// A condition that should hold but did not.
package struct FuzzFailure: Error, CustomStringConvertible {
  package var description: String

  package init(_ description: String) { self.description = description }
}
