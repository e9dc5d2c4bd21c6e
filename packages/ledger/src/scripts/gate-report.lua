-- Moves a circuit (packages/core/src/circuit/circuit-machine.ts).
-- KEYS: 1-3 as in includes/gate.lua
-- ARGV: 1 account, 2 event (trip, probe_succeeded, probe_failed, probe_now), 3 reason, 4 wait until the next
--       probe in ms (trip, probe_failed), least time between two probes in ms (probe_now)
-- Clock: Redis'. `probe_now` moves nothing: it makes a probe due, since a worker with other settings has come.
-- Workers that come one after another probe no more often for that, and a pause that was asked for stays one.
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
elseif event == 'probe_now' and before == 'open' then
  local why, nextProbe, probed = unpack(redis.call('HMGET', gateKey, 'reason', 'next', 'probed'))
  if why ~= 'throttled' then
    local due = math.max(now, (tonumber(probed) or 0) + waitMs)
    redis.call('HSET', gateKey, 'next', math.min(due, tonumber(nextProbe) or due))
  end
end
return {before, after}
