-- The ledger's clock: milliseconds of Redis' own time.
local function clockMs()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
