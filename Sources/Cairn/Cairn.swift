// Users need only `import Cairn`, because it re-exports the store.
@_exported public import CairnStore
