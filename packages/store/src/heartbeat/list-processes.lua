-- Lists the processes that run.
-- KEYS: 1 heartbeat, 2 processes, as in heartbeat/heartbeat.lua
-- ARGV: 1 before a process' id: its lifeline, 2 ms after which a silent process isn't listed
-- Clock: Redis'. Returns {now in ms, their values in the hash of processes}.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- @include heartbeat/gone
local listed = {}
local all = redis.call('HGETALL', KEYS[2])
for at = 1, #all, 2 do
  local seen = tonumber(string.match(all[at + 1], '^%d+ (%d+)') or 0)
  -- After a step of Redis' clock, an old heartbeat may lie after now.
  if math.abs(now - seen) <= tonumber(ARGV[2]) and not isGone(all[at + 1], ARGV[1] .. all[at]) then
    listed[#listed + 1] = all[at + 1]
  end
end
return {now, listed}
