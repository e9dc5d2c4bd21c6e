-- Claims an attempt while the breaker isn't closed. Only an acknowledgment that was released may claim, and only once.
-- While the breaker recovers, the rate must also allow the attempt at this moment, however late it comes.
-- KEYS: 1-3 as in circuit/circuit.lua
-- ARGV: 1 publisher|id, 2 bound of the recovery's rate per second, 3 interval of probes in ms, 4 longest wait for a probe in ms
-- Clock: Redis'. TTL: a breaker that is left alone for a day is forgotten.
-- Returns {code, phase}: 1 the breaker is closed, 2 this attempt is the probe, 3 granted within the rate, 0 not now.
-- @include redis/when-full
-- @include circuit/circuit
local member, bound, intervalMs, waitMaxMs = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local now = clockMs()
local phase = phaseOf()
local wasReleased = redis.call('ZREM', releasedKey, member) == 1
if phase == 'closed' then
  return {1, phase}
end
if not wasReleased then
  return {0, phase}
end
if phase == 'open' then
  local isDue, due = isProbeDue(now, waitMaxMs, publisherOf(member))
  if not isDue then
    return {0, phase}
  end
  -- An early probe of a publisher that isn't accused doesn't shorten the pause of the one that is.
  redis.call('HSET', circuitKey, 'next', math.max(due, now + intervalMs), 'probed', now)
  keepForADay()
  return {2, phase}
end
local since, tokens, at = unpack(redis.call('HMGET', circuitKey, 'since', 'tokens', 'at'))
local rate = rateOf(tonumber(since), now, bound)
local elapsedMs = math.max(now - tonumber(at), 0)
tokens = math.min(burstOf(rate), tonumber(tokens) + elapsedMs / 1000 * rate)
local granted = tokens >= 1
redis.call('HSET', circuitKey, 'tokens', tostring(granted and tokens - 1 or tokens), 'at', now)
return {granted and 3 or 0, phase}
