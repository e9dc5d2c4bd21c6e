-- Says whether a worker is to have Redis rewrite its files now: because it is time, because an operator asked, or because the
-- latest one failed. Only one worker is told so. What operators ask for starts at once, but no third rewrite starts within some
-- time for it: each copies all of Redis' memory to the disk.
-- KEYS: 1 the record of rewrites: a hash. `since`: when workers began to look. `started`: the latest start. `begun`: the
--       start that Redis has carried out, and `run`: the run of Redis that did. `finished`: the
--       start of the latest one that succeeded. `saved`: the start of the one after which
--       a snapshot was begun. `wanted`: an operator asked. `again`: the latest one failed. `before`: the start before the
--       latest. `interval`: as the workers are set. `denied`: Redis doesn't permit it.
-- ARGV: 1 time between two rewrites in ms, `0` for none, 2 the least time between two starts in ms, 3 the time in ms within
--       which an operator's wish doesn't start a third one
-- Clock: Redis'. TTL: none.
-- Returns {1 if a rewrite is to be started now, 1 if one was started that isn't known to have finished, now in ms}. Now is also
-- the start of one that is to be started.
-- @include redis/when-full
local key, intervalMs = KEYS[1], tonumber(ARGV[1])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local fields = redis.call('HMGET', key, 'since', 'started', 'finished', 'wanted', 'interval', 'again', 'before')
-- A time after now was written before Redis' clock was set back.
local function timeOf(text)
  local at = tonumber(text) or 0
  return at <= now and at or 0
end
local since, started = timeOf(fields[1]), timeOf(fields[2])
if since == 0 then
  since = now
  redis.call('HSET', key, 'since', now)
end
if fields[5] ~= ARGV[1] then
  redis.call('HSET', key, 'interval', ARGV[1])
end
local isDue = intervalMs > 0 and now - math.max(since, started) >= intervalMs
local isWanted = fields[4] and now - timeOf(fields[7]) >= tonumber(ARGV[3])
if (isWanted or fields[6] or isDue) and now - started >= tonumber(ARGV[2]) then
  redis.call('HSET', key, 'started', now, 'before', started)
  redis.call('HDEL', key, 'wanted', 'again', 'denied')
  return {1, 1, now}
end
return {0, (fields[2] and fields[2] ~= fields[3]) and 1 or 0, now}
