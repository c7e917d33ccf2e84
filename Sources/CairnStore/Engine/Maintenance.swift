/// What the lock of maintenance guards.
struct MaintenanceState: ~Copyable {
  var compaction = CompactionState()
}
