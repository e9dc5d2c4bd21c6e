-- Takes notes of work on queue payloads that are due, oldest first. A taken note comes up again after the
-- lease unless it is finished, so a note that must wait holds up no other, and two workers don't share one.
-- ARGV: 1 most notes, 2 lease in ms
-- Clock: Redis'. TTL: none.
-- Returns the notes: `requeue:ID:TIME` or `remove:ID`.
-- @include books
local now = clockMs()
local notes = redis.call('ZRANGEBYSCORE', payloadKey, '-inf', now, 'LIMIT', 0, ARGV[1])
for _, note in ipairs(notes) do
  redis.call('ZADD', payloadKey, now + ARGV[2], note)
end
return notes
