/// What the lock of maintenance guards.
struct MaintenanceState: ~Copyable {}
