-- Tells which processes are gone: they ended without removing their record. Such a process sends no heartbeat, and
-- Redis has no subscriber of its lifeline. A process that only stands still keeps its connections, so it isn't gone.
-- Include it after `now`, in a script whose first key is the heartbeat.
-- Clock: Redis'. A process that Redis told nothing of its lifeline is never gone.
local SILENT_MS = 3000
-- While Redis is away, no process can send a heartbeat, and all lifelines end. So the silence of a process counts only
-- from the time since which heartbeats have come without a longer pause than this.
local PAUSE_MAX_MS = 1500

local beats = redis.call('HMGET', KEYS[1], 'at', 'steady')
local isPause = math.abs(now - tonumber(beats[1] or 0)) > PAUSE_MAX_MS
local steadySince = isPause and now or tonumber(beats[2] or now)

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
