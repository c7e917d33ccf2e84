-- What wrk asks the server for: wrk -s load.lua URL -- counters | sessions | pages, SECONDS of a session
-- It prints what came of it in one line for ServerCheck.

local threads = {}

function setup(thread)
  table.insert(threads, thread)
end

function init(arguments)
  math.randomseed(os.time())
  acknowledged, unexpected = 0, 0
  local kind, session_seconds = arguments[1], tonumber(arguments[2])

  if kind == "counters" then
    -- Few counters, so that many add to the same one at once.
    request = function()
      return wrk.format("POST", "/counters/wrk-" .. math.random(0, 9))
    end
    response = function(status)
      if status == 200 then acknowledged = acknowledged + 1 else unexpected = unexpected + 1 end
    end

  elseif kind == "sessions" then
    local sessions, next_place = {}, 1
    request = function()
      local session = sessions[math.random(1, 2000)]
      -- Some seconds before its end it is asked for no more.
      if math.random(1, 20) == 1 or not session or session.ends < os.time() + 5 then
        return wrk.format("POST", "/session?user=wrk")
      end
      return wrk.format("GET", "/session", { Cookie = session.cookie })
    end
    response = function(status, headers)
      if status == 201 then
        for name, value in pairs(headers) do
          if name:lower() == "set-cookie" then
            sessions[next_place] = { cookie = value:match("^[^;]*"), ends = os.time() + session_seconds }
            next_place = next_place % 2000 + 1
          end
        end
      end
      if status == 200 or status == 201 then
        acknowledged = acknowledged + 1
      else
        unexpected = unexpected + 1
      end
    end

  else
    request = function()
      return wrk.format("GET", "/pages/" .. math.random(0, 999))
    end
  end
end

function done(summary, latency)
  local acknowledged, unexpected = 0, 0
  for _, thread in ipairs(threads) do
    acknowledged = acknowledged + thread:get("acknowledged")
    unexpected = unexpected + thread:get("unexpected")
  end
  print(string.format(
    '\nRESULT {"requests":%d,"acknowledged":%d,"unexpected":%d,"p50":%d,"p90":%d,"p99":%d,"p999":%d,"max":%d}',
    summary.requests, acknowledged, unexpected + summary.errors.status, latency:percentile(50),
    latency:percentile(90), latency:percentile(99), latency:percentile(99.9), latency.max))
end
