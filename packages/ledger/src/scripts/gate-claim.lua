-- Asks whether an attempt may be made now, while the circuit isn't closed: only for one that was let through,
-- once, and while it recovers only if the rate allows it at this very moment, however late it comes.
-- KEYS: 1-3 as in includes/gate.lua
-- ARGV: 1 publisher|id, 2 bound of the recovery's rate per second, 3 interval of probes in ms
-- Clock: Redis'.
-- Returns {code, phase}: 1 the circuit is closed, 2 this is the probe, 3 granted within the rate, 0 not now.
-- @include gate
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
local since, nextProbe, tokens, at = unpack(redis.call('HMGET', gateKey, 'since', 'next', 'tokens', 'at'))
if phase == 'open' then
  if now < (tonumber(nextProbe) or 0) then
    return {0, phase}
  end
  redis.call('HSET', gateKey, 'next', now + intervalMs, 'probed', now)
  return {2, phase}
end
local rate = rateOf(tonumber(since), now, bound)
local elapsedMs = math.max(now - tonumber(at), 0)
tokens = math.min(burstOf(rate), tonumber(tokens) + elapsedMs / 1000 * rate)
local granted = tokens >= 1
redis.call('HSET', gateKey, 'tokens', tostring(granted and tokens - 1 or tokens), 'at', now)
return {granted and 3 or 0, phase}
