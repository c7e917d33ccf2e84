// Users need only `import CairnRepair`, because it re-exports the store.
@_exported public import CairnStore
