-- Removes one letter from the dead letters, by a replay or a discard (invariant 7).
-- The queue's part becomes an outbox task in the same step, so that a crash before it is done loses nothing.
-- KEYS: 8 the audit
-- ARGV: 1 id, 2 event (replay, discard), 3 retention in ms (discard), 4 operator, 5 details of the audit as JSON
-- Clock: Redis'. TTL: a discarded entry lives for the retention.
-- Returns {code, outbox task}: 1 if booked, 0 if the id is unknown, -1 if it is not dead.
-- @include redis/ledger
-- @include dead-letters/dead-index
-- @include dead-letters/replay-dead
-- @include dead-letters/audit
local id, event = ARGV[1], ARGV[2]
local state, publisher, reason = unpack(redis.call('HMGET', entryKey, 's', 'p', 'x'))
if not state then
  return {0, ''}
end
if state ~= 'dead' then
  return {-1, ''}
end
local now = clockMs()
local task
if event == 'replay' then
  task = replayDead(entryKey, id, publisher, reason, now, now)
else
  removeDead(id, publisher, reason)
  redis.call('HSET', entryKey, 'e', now)
  task = 'remove:' .. id
  redis.call('ZADD', outboxKey, now, task)
  redis.call('PEXPIRE', entryKey, ARGV[3])
  move(entryKey, publisher, 'dead', 'discarded')
  count('discarded', publisher)
end
audit(KEYS[8], now, {by = ARGV[4], action = event, id = id, details = ARGV[5]})
return {1, task}
