-- wrk's requests. Usage: wrk -s load.lua URL -- counters|sessions|pages SESSION_SECONDS
-- Prints the results on one line for ServerCheck.

local threads = {}

function setup(thread)
  table.insert(threads, thread)
end

function init(arguments)
  math.randomseed(os.time())
  acknowledged, unexpected, unexpected_status = 0, 0, 0
  local function expect(is_expected, status)
    if is_expected then
      acknowledged = acknowledged + 1
    else
      unexpected, unexpected_status = unexpected + 1, status
    end
  end
  local kind, session_seconds = arguments[1], tonumber(arguments[2])

  if kind == "counters" then
    -- There are few counters, so several connections often increment the same one at once.
    request = function()
      return wrk.format("POST", "/counters/wrk-" .. math.random(0, 9))
    end
    response = function(status)
      expect(status == 200, status)
    end

  elseif kind == "sessions" then
    local sessions, next_place = {}, 1
    request = function()
      local session = sessions[math.random(1, 2000)]
      -- Uses a session only in the first half of its lifetime, because an answer may take long.
      if math.random(1, 20) == 1 or not session or session.begun < os.time() - session_seconds / 2 then
        return wrk.format("POST", "/session?user=wrk")
      end
      return wrk.format("GET", "/session", { Cookie = session.cookie })
    end
    response = function(status, headers)
      if status == 201 then
        for name, value in pairs(headers) do
          if name:lower() == "set-cookie" then
            sessions[next_place] = { cookie = value:match("^[^;]*"), begun = os.time() }
            next_place = next_place % 2000 + 1
          end
        end
      end
      expect(status == 200 or status == 201, status)
    end

  else
    request = function()
      return wrk.format("GET", "/pages/" .. math.random(0, 999))
    end
  end
end

function done(summary, latency)
  local acknowledged, unexpected, status = 0, summary.errors.status, 0
  for _, thread in ipairs(threads) do
    acknowledged = acknowledged + thread:get("acknowledged")
    unexpected = math.max(unexpected, thread:get("unexpected"))
    status = thread:get("unexpected_status")
  end
  -- wrk counts an answer after its timeout as an error, and leaves it out of the latencies.
  print(string.format(
    '\nRESULT {"requests":%d,"acknowledged":%d,"unexpected":%d,"unexpectedStatus":%d,"late":%d,'
      .. '"p50":%d,"p90":%d,"p99":%d,"p999":%d,"max":%d}',
    summary.requests, acknowledged, unexpected, status, summary.errors.timeout,
    latency:percentile(50), latency:percentile(90), latency:percentile(99), latency:percentile(99.9),
    latency.max))
end
