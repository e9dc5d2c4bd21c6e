-- Moves a circuit breaker. The rules are those of `decideCircuit` in core; test/circuits.test.ts compares the two.
-- `probe_now` moves nothing. It makes a probe due, because a worker with other settings has started. Workers that
-- restart often don't probe more often. A pause that the provider asked for is kept.
-- KEYS: 1 to 3 as in circuit/circuit.lua
-- ARGV: 1 id of the account, 2 event (trip, probe_succeeded, probe_failed, probe_now), 3 reason; '' keeps the present one (probe_failed),
--       4 in ms: wait until the next probe (trip, probe_failed), or least time since the last one (probe_now),
--       5 the only publisher whose acknowledgments failed, or '' (trip); the probe's, or '' if its failure may be about the
--       acknowledgment only (probe_failed),
--       6 a name of the account for operators, 7 the process that reports, 8 longest wait for a probe in ms,
--       9 interval of probes in ms
-- Clock: Redis'. TTL: a breaker that is left alone for a day is forgotten.
-- Returns {phase before, phase after}.
-- @include redis/when-full
-- @include circuit/circuit
local account, event, reason, waitMs, publisher = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]
local waitMaxMs, intervalMs = tonumber(ARGV[8]), tonumber(ARGV[9])
local now = clockMs()
local before = phaseOf()
local after = before
if event == 'trip' and before ~= 'open' then
  after = 'open'
  enter(after, now, reason, publisher)
  redis.call('HSET', circuitKey, 'next', now + waitMs, 'name', ARGV[6], 'by', ARGV[7], 'asked', now)
  redis.call('SADD', busyKey, account)
elseif event == 'probe_failed' and before == 'open' then
  local due, accused = unpack(redis.call('HMGET', circuitKey, 'next', 'accused'))
  accused = accused or ''
  -- One acknowledgment may always be throttled. So only a second probe in a row makes the account pause.
  if reason == 'throttled' and redis.call('HGET', circuitKey, 'reason') ~= reason then
    waitMs = math.min(waitMs, intervalMs)
  end
  -- A probe of a publisher that isn't accused may come early. It doesn't shorten the pause of the one that is.
  local least = accused ~= '' and publisher ~= accused and math.min(tonumber(due) or 0, now + waitMaxMs) or 0
  redis.call('HSET', circuitKey, 'next', math.max(now + waitMs, least))
  if reason ~= '' then
    redis.call('HSET', circuitKey, 'reason', reason)
  end
  if publisher ~= '' and publisher ~= accused then
    redis.call('HSET', circuitKey, 'accused', '')
  end
elseif event == 'probe_succeeded' and before == 'open' then
  after = 'recovering'
  enter(after, now, redis.call('HGET', circuitKey, 'reason'), '')
elseif event == 'probe_now' and before == 'open' and redis.call('HGET', circuitKey, 'reason') ~= 'throttled' then
  local probed, due = unpack(redis.call('HMGET', circuitKey, 'probed', 'next'))
  local soon = math.max(now, math.min(tonumber(probed) or 0, now) + waitMs)
  redis.call('HSET', circuitKey, 'next', math.min(soon, tonumber(due) or now))
end
keepForADay()
return {before, after}
