-- wrk -s paths.lua URL -- FILE: requests the paths in FILE, one a line, in random order. Prints the result as JSON.
local requests = {}

function init(arguments)
  for path in io.lines(arguments[1]) do requests[#requests + 1] = wrk.format("GET", path) end
  math.randomseed(tonumber(tostring({}):match("0x(%x+)"), 16) % 2147483647) -- differs by thread
end

function request() return requests[math.random(#requests)] end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '{"requests":%d,"seconds":%.3f,"p50_ms":%.3f,"p99_ms":%.3f,"max_ms":%.3f,"refused":%d,"lost":%d,"timed_out":%d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3, latency.max / 1e3,
    errors.status, errors.connect + errors.read + errors.write, errors.timeout))
end
