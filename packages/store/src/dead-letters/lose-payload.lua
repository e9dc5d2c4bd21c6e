-- Turns a queued entry whose text the queue doesn't hold any more into a dead letter (reason payload_lost). Otherwise
-- it would stay queued forever.
-- KEYS: 8 hash of the queued payload
-- ARGV: 1 id
-- Clock: Redis'. TTL: none.
-- Returns 1 if booked, 0 if the payload is there or the state is another one.
-- @include redis/when-full
-- @include redis/ledger
-- @include dead-letters/dead-index
-- @include dead-letters/replay-outcome
local id = ARGV[1]
local state, publisher, replay = unpack(redis.call('HMGET', entryKey, 's', 'p', 'R'))
if state ~= 'queued' or redis.call('EXISTS', KEYS[8]) == 1 then
  return 0
end
local now = clockMs()
move(entryKey, publisher, 'queued', 'dead')
redis.call('ZREM', queuedKey, id)
redis.call('HDEL', entryKey, 'w', 'y')
redis.call('HSET', entryKey, 'e', now, 'x', 'payload_lost')
addDead(id, publisher, 'payload_lost', '', now)
count('dead', publisher, 'payload_lost')
countOutcome(entryKey, replay, 'dead', 'payload_lost')
return 1
