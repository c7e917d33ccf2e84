#include <sqlite3.h>

/// Stops SQLite from counting its allocations, which takes a lock that all connections share. Swift
/// cannot call variadic functions.
static inline int cairn_sqlite3_stop_counting(void) {
  return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}
