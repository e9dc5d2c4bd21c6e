-- Ends a running bulk replay or bulk discard. What it has done stays done.
-- ARGV: 1 its id, 2 operator, 3 retention in ms, 4 `replay` or `discard`
-- Clock: Redis'. TTL: the record lives for the retention.
-- Returns 1 if cancelled, 0 if unknown, -1 if it had ended.
-- @include redis/when-full
-- @include redis/ledger
-- @include dead-letters/bulk-record
-- @include dead-letters/audit
local done = ARGV[4] == 'replay' and 'replayed' or 'discarded'
local state, count, publisher = unpack(redis.call('HMGET', bulkKey, 'state', done, 'publisher'))
if not state then
  return 0
elseif state ~= 'running' then
  return -1
end
local now = clockMs()
endBulk(ARGV[1], 'cancelled', now, ARGV[3])
audit(auditKey, now, {by = ARGV[2], action = ARGV[4] .. 's_cancel', publisher = publisher,
  [ARGV[4]] = ARGV[1], details = '{"' .. done .. '":' .. (tonumber(count) or 0) .. '}'})
return 1
