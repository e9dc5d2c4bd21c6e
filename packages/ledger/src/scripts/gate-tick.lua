-- Lets through what may go out now: all that workers have room for while the circuit is closed, one probe
-- when one is due while it is open, what the rate allows while it recovers. Publishers of the account take
-- turns. What is let through has a lease: a worker that dies before it takes it on loses nothing.
-- KEYS: 1-3 as in includes/gate.lua, 4… the waiting acknowledgments of each publisher
-- ARGV: 1 account, 2 bound of the recovery's rate per second, 3 room of this worker, 4 lease in ms, 5… the publishers
-- Clock: Redis'. TTL: none; the gate of a closed account keeps its last phase.
-- Returns {now, phase, reason, since, next probe, how many wait, {publisher|id, …} let through}.
-- @include gate
local account, bound, room = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local leaseMs, publishersAt = tonumber(ARGV[4]), 5
local now = clockMs()
local queues = #KEYS - 3

-- What was let through and not taken waits again, at the front.
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
local since, nextProbe = unpack(redis.call('HMGET', gateKey, 'since', 'next'))
since, nextProbe = tonumber(since) or now, tonumber(nextProbe) or 0
local under = redis.call('ZCARD', releasedKey)
local wanted = 0
if phase == 'closed' then
  wanted = room
elseif phase == 'open' then
  wanted = (now >= nextProbe and under == 0) and 1 or 0
else
  wanted = math.min(room, math.ceil(burstOf(rateOf(since, now, bound)) * 2) - under)
end

local waiting = 0
local sizes = {}
for at = 1, queues do
  sizes[at] = redis.call('ZCARD', KEYS[3 + at])
  waiting = waiting + sizes[at]
end

local released = {}
local turn = tonumber(redis.call('HGET', gateKey, 'turn')) or 0
local left = math.min(wanted, waiting)
waiting = waiting - math.max(left, 0)
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
  redis.call('HSET', gateKey, 'turn', turn % queues)
  redis.call('SADD', busyKey, account)
elseif waiting == 0 and under == 0 then
  if phase == 'recovering' then
    phase, since = 'closed', now
    enter(phase, now, '')
  end
  if phase == 'closed' then
    redis.call('SREM', busyKey, account)
  end
end
return {now, phase, redis.call('HGET', gateKey, 'reason') or '', since, nextProbe, waiting, released}
