-- Puts one dead letter back on the queue (invariant 7).
-- The queue's part becomes an outbox task in the same step, so that a crash before it is done loses nothing.
-- KEYS: 8 the audit
-- ARGV: 1 id, 2 operator
-- Clock: Redis'. TTL: none.
-- Returns {code, outbox task}: 1 if booked, 0 if the id is unknown, -1 if it is not dead.
-- @include redis/when-full
-- @include redis/ledger
-- @include redis/stored-bytes
-- @include dead-letters/dead-index
-- @include dead-letters/replay-dead
-- @include dead-letters/audit
local id = ARGV[1]
local state, publisher, reason, code = unpack(redis.call('HMGET', entryKey, 's', 'p', 'x', 'y'))
if not state then
  return {0, ''}
elseif state ~= 'dead' then
  return {-1, ''}
end
local now = clockMs()
local task = replayDead(entryKey, id, publisher, reason, code, now, now)
audit(KEYS[8], now, {by = ARGV[2], action = 'replay', publisher = publisher, id = id, details = '{}'})
return {1, task}
