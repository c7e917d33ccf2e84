/// A count of what a cache did or holds, with its name, as metrics libraries want it.
typealias Metric = (name: String, value: UInt64)
