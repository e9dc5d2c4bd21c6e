-- Tells which processes are gone: they ended without removing their record. Such a process sends no heartbeat, and
-- Redis has no subscriber of its lifeline. A process that only stands still keeps its connections, so it isn't gone.
-- Include it after `now`, in a script whose first key is the heartbeat.
-- Clock: Redis'. A process that Redis told nothing of its lifeline is never gone.
local SILENT_MS = 3000
-- @include heartbeat/steady
local steadySince = steadySinceMs(KEYS[1], now)

-- How many subscribers a lifeline has; nil if Redis doesn't say.
local function subscribersOf(channel)
  return redis.pcall('PUBSUB', 'NUMSUB', channel)[2]
end

-- `stored` is a process' value in the hash of processes, `channel` its lifeline.
local function isGone(stored, channel)
  local seen, record = string.match(stored, '^%d+ (%d+) (.*)$')
  return seen and now - math.max(tonumber(seen), steadySince) > SILENT_MS
    and string.find(record, '"hasLifeline":true', 1, true) and subscribersOf(channel) == 0
end
