-- Ends a dead letter or a queued acknowledgment for good, wherever its job is (invariant 7).
-- 1. While an attempt is under way, its outcome isn't known, and nothing changes. So nothing that the provider took in
--    this attempt is booked as discarded.
-- 2. The removal of the text becomes an outbox task in the same step, so that a crash before it is done loses nothing. A
--    job that comes up before its removal finds the state, and posts nothing (invariant 3).
-- 3. A parked acknowledgment may have been released just now. Then the circuit breaker finds no job for it, and forgets it.
-- KEYS: 8 the audit, 9 the job's payload, 10 the job's lock, which an attempt holds
-- ARGV: 1 id, 2 the id as callers know it, 3 retention in ms, 4 operator, 5 details of the audit as a JSON object,
--       6 prefix of the keys of parked acknowledgments
-- Clock: Redis'. TTL: a discarded entry lives for the retention.
-- Returns {code, outbox task}: 1 if booked, 0 if the id is unknown, -1 if its state doesn't allow it, -2 if an attempt is
-- under way.
-- @include redis/when-full
-- @include redis/ledger
-- @include redis/stored-bytes
-- @include dead-letters/dead-index
-- @include dead-letters/discard-entry
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
elseif redis.call('EXISTS', KEYS[10]) == 1 then
  return {-2, ''}
else
  redis.call('ZREM', queuedKey, id)
  redis.call('ZREM', dueKey, id)
  redis.call('ZREM', ARGV[6] .. publisher, id)
  redis.call('HDEL', entryKey, 'w')
end
local now = clockMs()
local task = discardEntry(entryKey, id, publisher, state, now, now, ARGV[3])
countOutcome(entryKey, replay, 'discarded')
audit(KEYS[8], now, {by = ARGV[4], action = 'discard', publisher = publisher, id = id,
  details = string.gsub(ARGV[5], '}$', ',"from":"' .. state .. '"}')})

-- The caller's body is text in the job's data, so its quotes are escaped there, and the match is the job's own member.
local channel = string.match(redis.call('HGET', KEYS[9], 'data') or '', '"replyTo":"([^"\\]+)"')
if channel then
  redis.pcall('PUBLISH', channel, cjson.encode({adResponseId = ARGV[2], publisher = publisher, event = 'discard',
    code = 'discarded', delayMs = 0}))
end
return {1, task}
