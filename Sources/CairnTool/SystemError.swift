/// A failed system call.
struct SystemError: Error {
  let call: String
  let number: Int32
}
