-- Moves a circuit (packages/core/src/circuit/circuit-machine.ts).
-- KEYS: 1-3 as in includes/gate.lua
-- ARGV: 1 account, 2 event (trip, probe_succeeded, probe_failed, probe_now), 3 reason, 4 wait until the next
--       probe in ms (trip, probe_failed), or least time after the last one (probe_now)
-- Clock: Redis'. `probe_now` moves nothing: it makes a probe due, since a worker with other settings has come;
-- workers that come again and again make none more often. A provider that asked for a pause has it all the same.
-- Returns {phase before, phase after}.
-- @include gate
local account, event, reason, waitMs = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local now = clockMs()
local before = phaseOf()
local after = before
if event == 'trip' and before ~= 'open' then
  after = 'open'
  enter(after, now, reason)
  redis.call('HSET', gateKey, 'next', now + waitMs)
  redis.call('SADD', busyKey, account)
elseif event == 'probe_failed' and before == 'open' then
  redis.call('HSET', gateKey, 'reason', reason, 'next', now + waitMs)
elseif event == 'probe_succeeded' and before == 'open' then
  after = 'recovering'
  enter(after, now, redis.call('HGET', gateKey, 'reason'))
elseif event == 'probe_now' and before == 'open' and redis.call('HGET', gateKey, 'reason') ~= 'throttled' then
  local probed, due = unpack(redis.call('HMGET', gateKey, 'probed', 'next'))
  local soon = math.max(now, (tonumber(probed) or 0) + waitMs)
  redis.call('HSET', gateKey, 'next', math.min(soon, tonumber(due) or now))
end
return {before, after}
