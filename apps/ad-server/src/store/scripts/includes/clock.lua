-- The clock of the books is Redis' own. Days are of UTC, as their number since 1970.
local DAY_MS = 86400000
local function clockMs()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
local function dayOf(now)
  return math.floor(now / DAY_MS)
end
