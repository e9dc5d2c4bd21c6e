-- Releases parked acknowledgments that may go out now: while the breaker is closed as many as the worker has room for,
-- while it is open one probe when one is due, while it recovers as many as the rate allows. Publishers of the account
-- take turns, each as long as the worker has room for it. A released acknowledgment has a lease: if the worker dies
-- before it claims it, it is parked again.
-- KEYS: 1-3 as in circuit/circuit.lua, 4… the parked acknowledgments of each publisher
-- ARGV: 1 id of the account, 2 bound of the recovery's rate per second, 3 room of this worker, 4 lease in ms, 5 longest wait
--       for a probe in ms; then for each publisher its id and this worker's room for it
-- Clock: Redis'. TTL: a breaker that is left alone for a day is forgotten.
-- Returns {now, phase, reason, since, next probe, how many are parked, {publisher|id, …} that were released, 1 if this
-- release has closed the breaker, else 0}.
-- @include redis/when-full
-- @include circuit/circuit
local account, bound, room = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local leaseMs, waitMaxMs = tonumber(ARGV[4]), tonumber(ARGV[5])
local now = clockMs()
local queues = #KEYS - 3
local publishers, rooms, queueOf = {}, {}, {}
for at = 1, queues do
  publishers[at], rooms[at] = ARGV[4 + 2 * at], tonumber(ARGV[5 + 2 * at])
  queueOf[publishers[at]] = KEYS[3 + at]
end

-- No lease ends later than a lease from now: then the clock was set back. If a released one is parked again, another worker
-- has fetched its job and may not attempt it: it has another key, or no slot. Then the next one need not wait for the lease.
local leases = redis.call('ZRANGE', releasedKey, 0, 499, 'WITHSCORES')
for at = 1, #leases, 2 do
  local member, endsAt = leases[at], tonumber(leases[at + 1])
  local publisher, id = string.match(member, '^([^|]*)|(.*)$')
  local queue = queueOf[publisher]
  if endsAt <= now or endsAt > now + leaseMs then
    redis.call('ZREM', releasedKey, member)
    if queue then
      redis.call('ZADD', queue, 0, id)
    end
  elseif queue and redis.call('ZSCORE', queue, id) then
    redis.call('ZREM', releasedKey, member)
  end
end

local phase = phaseOf()
local since, accused = unpack(redis.call('HMGET', circuitKey, 'since', 'accused'))
since, accused = tonumber(since) or now, accused or ''
local isDue, nextProbe = isProbeDue(now, waitMaxMs)
local leased = redis.call('ZCARD', releasedKey)
local wanted = 0
if phase == 'closed' then
  wanted = room
elseif phase == 'open' then
  wanted = leased == 0 and 1 or 0
  for at = 1, queues do
    if not isDue and (accused == '' or publishers[at] == accused) then
      rooms[at] = 0
    end
  end
else
  wanted = math.min(room, math.ceil(burstOf(rateOf(since, now, bound)) * 2) - leased)
end

local parked, left = 0, 0
for at = 1, queues do
  local size = redis.call('ZCARD', KEYS[3 + at])
  parked = parked + size
  rooms[at] = math.min(rooms[at], size)
  left = left + math.max(rooms[at], 0)
end

local released, hasClosed = {}, 0
local turn = tonumber(redis.call('HGET', circuitKey, 'turn')) or 0
left = math.max(math.min(wanted, left), 0)
parked = parked - left
while left > 0 do
  local at = turn % queues + 1
  turn = turn + 1
  if rooms[at] > 0 then
    rooms[at] = rooms[at] - 1
    left = left - 1
    local member = publishers[at] .. '|' .. redis.call('ZPOPMIN', KEYS[3 + at])[1]
    redis.call('ZADD', releasedKey, now + leaseMs, member)
    released[#released + 1] = member
  end
end

if #released > 0 then
  redis.call('HSET', circuitKey, 'turn', turn % queues)
  redis.call('SADD', busyKey, account)
elseif parked == 0 and leased == 0 then
  if phase == 'recovering' then
    phase, since, hasClosed = 'closed', now, 1
    enter(phase, now, '', '')
  end
  if phase == 'closed' then
    redis.call('SREM', busyKey, account)
  end
end
if phase ~= 'closed' or parked > 0 then
  noteAsked(account, now)
end
return {now, phase, redis.call('HGET', circuitKey, 'reason') or '', since, nextProbe, parked, released, hasClosed}
