-- Ends a running bulk replay. What it has put back stays on the queue.
-- ARGV: 1 replay's id, 2 operator, 3 retention in ms
-- Clock: Redis'. TTL: the record lives for the retention.
-- Returns 1 if cancelled, 0 if unknown, -1 if it had ended.
-- @include redis/when-full
-- @include redis/ledger
-- @include dead-letters/replay-keys
-- @include dead-letters/audit
local state = redis.call('HGET', replayKey, 'state')
if not state then
  return 0
elseif state ~= 'running' then
  return -1
end
local now = clockMs()
redis.call('HSET', replayKey, 'state', 'cancelled', 'updated', now, 'ended', now)
redis.call('PEXPIRE', replayKey, ARGV[3])
redis.call('SREM', runningKey, ARGV[1])
audit(auditKey, now, {by = ARGV[2], action = 'replays_cancel', replay = ARGV[1], details = '{}'})
return 1
