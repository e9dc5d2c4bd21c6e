-- Takes one dead letter out of the dead letters: by replay or by discard (invariant 7).
-- The queue's part is noted in the same step, so that a crash before it is done loses nothing.
-- ARGV: 1 id, 2 event (replay, discard), 3 retention in ms (discard)
-- Clock: Redis'. TTL: a discarded entry lives for the retention.
-- Returns 1 if booked, 0 if the id is unknown, -1 if it is not dead.
-- @include books
local id, event = ARGV[1], ARGV[2]
local state, publisher = unpack(redis.call('HMGET', entryKey, 's', 'p'))
if not state then
  return 0
end
if state ~= 'dead' then
  return -1
end
local now = clockMs()
redis.call('ZREM', deadKey, id)
if event == 'replay' then
  redis.call('HSET', entryKey, 'q', now, 'f', 0)
  redis.call('HDEL', entryKey, 'x', 'e')
  redis.call('ZADD', queuedKey, now, id)
  redis.call('ZADD', payloadKey, now, 'requeue:' .. id)
  move(entryKey, publisher, 'dead', 'queued')
  count('replayed', publisher)
else
  redis.call('HSET', entryKey, 'e', now)
  redis.call('ZADD', payloadKey, now, 'remove:' .. id)
  redis.call('PEXPIRE', entryKey, ARGV[3])
  move(entryKey, publisher, 'dead', 'discarded')
  count('discarded', publisher)
end
return 1
