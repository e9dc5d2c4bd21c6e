-- Books that an acknowledgment is in the queue, and tells how it stands. Run by the gateway after it has queued the
-- job; begin.lua does the same at the start of every attempt: whichever comes first books it (invariants 2 and 3).
-- KEYS: 8 hash of the queued payload, in the same partition
-- ARGV: 1 id, 2 publisher, 3 fingerprint of the text, 4 field of the payload that holds its fingerprint
-- Clock: Redis'. TTL: lifted from a missed record that is acknowledged after all.
-- Returns {code, now in ms, fields and values of the entry}; codes are in reply-codes.ts.
-- @include books
-- @include accept
local now = clockMs()
local code = acceptOne(entryKey, ARGV[1], ARGV[2], ARGV[3], KEYS[8], ARGV[4], now)
if code > 4 then
  return {code, now}
end
return {code, now, unpack(redis.call('HGETALL', entryKey))}
