// `import Cairn` is all that a user needs: the store comes with it.
@_exported public import CairnStore
