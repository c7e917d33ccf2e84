/// A count of what a cache did or holds, with its name, in the form for metrics libraries.
typealias Metric = (name: String, value: UInt64)
