/// A system call that failed.
struct SystemError: Error {
  let call: String
  let number: Int32
}
