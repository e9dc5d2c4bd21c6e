-- The ledger's clock is Redis' own, so that skew between machines moves no deadline. In µs, and in ms.
local function clockUs()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
local function clockMs()
  return math.floor(clockUs() / 1000)
end
