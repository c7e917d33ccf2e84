package import CairnLibC

// The parameters of posix_spawn(3): structures on Linux, pointers on Darwin.

#if canImport(Darwin)
  package typealias SpawnActions = posix_spawn_file_actions_t?
  package typealias SpawnAttributes = posix_spawnattr_t?
  @safe package func noSpawnActions() -> SpawnActions { nil }
  @safe package func noSpawnAttributes() -> SpawnAttributes { nil }
#else
  package typealias SpawnActions = posix_spawn_file_actions_t
  package typealias SpawnAttributes = posix_spawnattr_t
  @safe package func noSpawnActions() -> SpawnActions { unsafe SpawnActions() }
  @safe package func noSpawnAttributes() -> SpawnAttributes { SpawnAttributes() }
#endif
