-- Books that an acknowledgment is in the queue, and tells how it stands. Run by the gateway after it has
-- queued the job, and by the worker at the start of every attempt: whichever comes first books it
-- (invariants 2 and 3). Nothing is booked unless the queue really holds this text (invariant 1): an
-- earlier request with another text may have queued its job and died before it could book it.
-- KEYS: 8 hash of the queued payload, in the same partition
-- ARGV: 1 id, 2 publisher, 3 fingerprint of the text, 4 field of the payload that holds its fingerprint
-- Clock: Redis'. TTL: lifted from a missed record that is acknowledged after all.
-- Returns {code, now in ms, fields and values of the entry}; codes are in reply-codes.ts.
-- @include books
local id, publisher, textHash = ARGV[1], ARGV[2], ARGV[3]
local state, owner, knownHash = unpack(redis.call('HMGET', entryKey, 's', 'p', 't'))
local now = clockMs()

local function book(from, code)
  local queued = redis.call('HGET', KEYS[8], ARGV[4])
  if not queued then
    return 8
  elseif queued ~= textHash then
    return 5
  end
  redis.call('HSET', entryKey, 'p', publisher, 't', textHash, 'a', now, 'q', now, 'n', 0, 'f', 0)
  redis.call('ZREM', awaitingKey, id)
  redis.call('ZADD', queuedKey, now, id)
  move(entryKey, publisher, from, 'queued')
  count('accepted', publisher)
  return code
end

local code
if not state then
  code = book(nil, 3)
elseif owner ~= publisher then
  code = 7
elseif state == 'awaiting' then
  code = book('awaiting', 1)
elseif state == 'missed' then
  code = book('missed', 2)
elseif state == 'unacknowledgeable' or state == 'abandoned' then
  code = 6
elseif knownHash ~= textHash then
  code = 5
else
  code = 4
end

if code == 2 then
  redis.call('HSET', entryKey, 'L', 1)
  redis.call('HDEL', entryKey, 'e')
  redis.call('PERSIST', entryKey)
  count('late', publisher)
elseif code == 3 then
  count('unknown', publisher)
elseif code > 4 then
  return {code, now}
end
return {code, now, unpack(redis.call('HGETALL', entryKey))}
