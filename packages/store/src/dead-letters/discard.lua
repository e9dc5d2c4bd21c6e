-- Ends a dead letter or a queued acknowledgment for good, wherever its job is (invariant 7). A queued one is ended as in
-- dead-letters/leave-queue.lua. The removal of the text becomes an outbox task in the same step, so that a crash before it is
-- done loses nothing. A job that comes up before its removal finds the state, and posts nothing (invariant 3).
-- KEYS: 8 the audit, 9 the job's payload
-- ARGV: 1 id, 2 retention in ms, 3 operator, 4 details of the audit as a JSON object, 5 prefix of the keys of parked
--       acknowledgments
-- Clock: Redis'. TTL: a discarded entry lives for the retention.
-- Returns {code, outbox task}: 1 if booked, 0 if the id is unknown, -1 if its state doesn't allow it, -2 if an attempt is
-- under way.
-- @include redis/when-full
-- @include redis/ledger
-- @include redis/stored-bytes
-- @include dead-letters/dead-index
-- @include dead-letters/discard-entry
-- @include dead-letters/leave-queue
-- @include dead-letters/replay-outcome
-- @include dead-letters/audit
local id = ARGV[1]
local state, publisher, reason, code, replay = unpack(redis.call('HMGET', entryKey, 's', 'p', 'x', 'y', 'R'))
if not state then
  return {0, ''}
elseif state == 'dead' then
  removeDead(id, publisher, reason, code)
elseif state ~= 'queued' then
  return {-1, ''}
elseif isHeld(KEYS[9]) then
  return {-2, ''}
else
  leaveQueue(entryKey, id, publisher, ARGV[5])
end
local now = clockMs()
local task = discardEntry(entryKey, id, publisher, state, now, now, ARGV[2])
countOutcome(entryKey, replay, 'discarded')
audit(KEYS[8], now, {by = ARGV[3], action = 'discard', publisher = publisher, id = id,
  details = string.gsub(ARGV[4], '}$', ',"from":"' .. state .. '"}')})
tellCallerOf(KEYS[9], id, publisher)
return {1, task}
