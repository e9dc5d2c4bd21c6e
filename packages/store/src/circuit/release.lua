-- Releases parked acknowledgments that may go out now: while the breaker is closed as many as the worker has room for,
-- while it is open one probe when one is due, while it recovers as many as the rate allows. Publishers of the account
-- take turns. A released acknowledgment has a lease: if the worker dies before it claims it, it is parked again.
-- KEYS: 1-3 as in circuit/circuit.lua, 4… the parked acknowledgments of each publisher
-- ARGV: 1 account, 2 bound of the recovery's rate per second, 3 room of this worker, 4 lease in ms, 5… the publishers
-- Clock: Redis'. TTL: none; a closed breaker keeps its last phase.
-- Returns {now, phase, reason, since, next probe, how many are parked, {publisher|id, …} that were released}.
-- @include circuit/circuit
local account, bound, room = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local leaseMs, publishersAt = tonumber(ARGV[4]), 5
local now = clockMs()
local queues = #KEYS - 3

-- Leases that ended: park these again, at the front.
for _, member in ipairs(redis.call('ZRANGEBYSCORE', releasedKey, '-inf', now, 'LIMIT', 0, 500)) do
  redis.call('ZREM', releasedKey, member)
  local publisher, id = string.match(member, '^([^|]*)|(.*)$')
  for at = 1, queues do
    if ARGV[publishersAt + at - 1] == publisher then
      redis.call('ZADD', KEYS[3 + at], 0, id)
    end
  end
end

local phase = phaseOf()
local since, nextProbe = unpack(redis.call('HMGET', circuitKey, 'since', 'next'))
since, nextProbe = tonumber(since) or now, tonumber(nextProbe) or 0
local leased = redis.call('ZCARD', releasedKey)
local wanted = 0
if phase == 'closed' then
  wanted = room
elseif phase == 'open' then
  wanted = (now >= nextProbe and leased == 0) and 1 or 0
else
  wanted = math.min(room, math.ceil(burstOf(rateOf(since, now, bound)) * 2) - leased)
end

local parked = 0
local sizes = {}
for at = 1, queues do
  sizes[at] = redis.call('ZCARD', KEYS[3 + at])
  parked = parked + sizes[at]
end

local released = {}
local turn = tonumber(redis.call('HGET', circuitKey, 'turn')) or 0
local left = math.min(wanted, parked)
parked = parked - math.max(left, 0)
while left > 0 do
  local at = turn % queues + 1
  turn = turn + 1
  if sizes[at] > 0 then
    sizes[at] = sizes[at] - 1
    left = left - 1
    local member = ARGV[publishersAt + at - 1] .. '|' .. redis.call('ZPOPMIN', KEYS[3 + at])[1]
    redis.call('ZADD', releasedKey, now + leaseMs, member)
    released[#released + 1] = member
  end
end

if #released > 0 then
  redis.call('HSET', circuitKey, 'turn', turn % queues)
  redis.call('SADD', busyKey, account)
elseif parked == 0 and leased == 0 then
  if phase == 'recovering' then
    phase, since = 'closed', now
    enter(phase, now, '')
  end
  if phase == 'closed' then
    redis.call('SREM', busyKey, account)
  end
end
return {now, phase, redis.call('HGET', circuitKey, 'reason') or '', since, nextProbe, parked, released}
