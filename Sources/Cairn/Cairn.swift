// `import Cairn` is all that a user needs: it re-exports the store.
@_exported public import CairnStore
