/// A time that never comes, in milliseconds.
@usableFromInline let never = Int64.max
