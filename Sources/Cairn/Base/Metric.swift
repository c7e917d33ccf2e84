/// A named count of a cache's operations or contents, for metrics libraries.
typealias Metric = (name: String, value: UInt64)
