-- Claims an attempt while the breaker isn't closed. Only an acknowledgment that was released may claim, and only once.
-- While the breaker recovers, the rate must also allow the attempt at this moment, however late it comes.
-- KEYS: 1-3 as in circuit/circuit.lua
-- ARGV: 1 publisher|id, 2 bound of the recovery's rate per second, 3 interval of probes in ms
-- Clock: Redis'.
-- Returns {code, phase}: 1 the breaker is closed, 2 this attempt is the probe, 3 granted within the rate, 0 not now.
-- @include circuit/circuit
local member, bound, intervalMs = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local now = clockMs()
local phase = phaseOf()
local wasReleased = redis.call('ZREM', releasedKey, member) == 1
if phase == 'closed' then
  return {1, phase}
end
if not wasReleased then
  return {0, phase}
end
local since, nextProbe, tokens, at = unpack(redis.call('HMGET', circuitKey, 'since', 'next', 'tokens', 'at'))
if phase == 'open' then
  if now < (tonumber(nextProbe) or 0) then
    return {0, phase}
  end
  redis.call('HSET', circuitKey, 'next', now + intervalMs, 'probed', now)
  return {2, phase}
end
local rate = rateOf(tonumber(since), now, bound)
local elapsedMs = math.max(now - tonumber(at), 0)
tokens = math.min(burstOf(rate), tonumber(tokens) + elapsedMs / 1000 * rate)
local granted = tokens >= 1
redis.call('HSET', circuitKey, 'tokens', tostring(granted and tokens - 1 or tokens), 'at', now)
return {granted and 3 or 0, phase}
