import CairnHummingbird
import Hummingbird

/// Adds the routes of the counters. A `POST` increments a counter and returns the count; a `GET`
/// returns the count.
func addCounters(to router: Router<BasicRequestContext>, persist: CairnPersistDriver) {
  router.post("counters/:name") { _, context in
    let count = try await persist.update(key: try key(context), as: Int.self) { ($0 ?? 0) + 1 }
    return String(count)
  }
  router.get("counters/:name") { _, context in
    String(try await persist.get(key: try key(context), as: Int.self) ?? 0)
  }

  @Sendable func key(_ context: BasicRequestContext) throws -> String {
    "counter/" + (try context.parameters.require("name"))
  }
}
