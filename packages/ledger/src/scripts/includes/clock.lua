-- The ledger's clock: Redis' own time, in microseconds and in milliseconds.
local function clockUs()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
local function clockMs()
  return math.floor(clockUs() / 1000)
end
