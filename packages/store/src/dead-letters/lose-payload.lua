-- Turns a queued entry whose text the queue doesn't hold any more into a dead letter (reason payload_lost). Otherwise
-- it would stay queued forever.
-- KEYS: 8 hash of the queued payload
-- ARGV: 1 id
-- Clock: Redis'. TTL: none.
-- Returns 1 if booked, 0 if the payload is there or the state is another one.
-- @include redis/when-full
-- @include redis/ledger
-- @include redis/stored-bytes
-- @include dead-letters/dead-index
-- @include dead-letters/replay-outcome
local id = ARGV[1]
local state, publisher, replay, stored = unpack(redis.call('HMGET', entryKey, 's', 'p', 'R', 'b'))
if state ~= 'queued' or redis.call('EXISTS', KEYS[8]) == 1 then
  return 0
end
local now = clockMs()
local kind = releaseBytes(stored, publisher, 'queued')
if kind then
  -- Without the text, it takes the rest only.
  redis.call('HSET', entryKey, 'b', storeBytes(publisher, 'dead', kind, OVERHEAD_BYTES))
end
move(entryKey, publisher, 'queued', 'dead')
redis.call('ZREM', queuedKey, id)
redis.call('HDEL', entryKey, 'w', 'y')
redis.call('HSET', entryKey, 'e', now, 'x', 'payload_lost')
addDead(entryKey, id, publisher, 'payload_lost', '', now)
count('dead', publisher, 'payload_lost')
countOutcome(entryKey, replay, 'dead', 'payload_lost')
return 1
