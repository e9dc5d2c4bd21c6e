-- Tells workers how acknowledgments stand whose attempts are to begin, and books those that a crashed gateway
-- couldn't (invariants 2 and 3).
-- KEYS: the entries of all but the first from 8 on, then the queued payloads of all
-- ARGV: 1 field of the payloads that holds a text's fingerprint, then for each its id, publisher and fingerprint
-- Clock: Redis'. TTL: lifted from a missed record that is acknowledged after all.
-- Returns a text for each, as includes/standing.lua words it. Codes are in reply-codes.ts; those that refuse come alone.
-- @include books
-- @include batch
-- @include acceptance
-- @include standing
-- Answers its code, and how it stood before. Nothing is booked unless the queue really holds this text (invariant 1).
local function beginOne(key, id, publisher, textHash, payload, now)
  local stood = readStanding(key)
  local code = judge(stood[1], stood[8], stood[9], publisher, textHash)
  if code > 3 then
    return code, stood
  end
  local queued = redis.call('HGET', payload, ARGV[1])
  if queued ~= textHash then
    return queued and 5 or 8
  end
  bookAccepted(key, id, publisher, textHash, code, now)
  return code, stood
end

local now = clockMs()
local nowText = string.format('%.0f', now)
local items = (#ARGV - 1) / 3
return eachOf(items, function(at)
  local id, publisher, textHash = unpack(ARGV, 3 * at - 1, 3 * at + 1)
  local code, stood = beginOne(entryKeyOf(at), id, publisher, textHash, KEYS[6 + items + at], now)
  if code > 4 then
    return tostring(code)
  elseif code < 4 then
    return code .. ',' .. nowText .. ',queued,,' .. nowText .. ',0,0,'
  end
  return tellStanding(stood, nowText)
end)
