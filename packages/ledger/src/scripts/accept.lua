-- Books that an acknowledgment is in the queue, and tells how it stands. Run by the worker at the start of every
-- attempt: what the gateway took (take.lua) is booked already, and what lost data left in the queue alone is booked
-- here (invariants 2 and 3). Nothing is booked unless the queue really holds this text (invariant 1).
-- KEYS: 8 hash of the queued payload, in the same partition
-- ARGV: 1 id, 2 publisher, 3 fingerprint of the text, 4 field of the payload that holds its fingerprint
-- Clock: Redis'. TTL: lifted from a missed record that is acknowledged after all.
-- Returns {code, now in ms, fields and values of the entry}; codes are in reply-codes.ts.
-- @include books
-- @include acceptance
local id, publisher, textHash = ARGV[1], ARGV[2], ARGV[3]
local state, owner, knownHash = unpack(redis.call('HMGET', entryKey, 's', 'p', 't'))
local now = clockMs()

local code = judge(state, owner, knownHash, publisher, textHash)
if code <= 3 then
  local queued = redis.call('HGET', KEYS[8], ARGV[4])
  if queued == textHash then
    bookAccepted(entryKey, id, publisher, textHash, code, now)
  else
    code = queued and 5 or 8
  end
end
if code > 4 then
  return {code, now}
end
return {code, now, unpack(redis.call('HGETALL', entryKey))}
