-- Begins attempts: reads their entries, and books acknowledgments that a gateway queued and couldn't book before it died
-- (invariants 2 and 3).
-- KEYS: 1 to 7 as in redis/ledger.lua (1 is the first entry), from 8 on the other entries, then one payload each
-- ARGV: 1 field of the payloads that holds a text's fingerprint, then for each its id, publisher and fingerprint
-- Clock: Redis'. TTL: removed from a missed entry that is acknowledged after all.
-- Returns a text for each, as `writeEntry` in redis/ledger.lua writes it. For a refusal it is only the code
-- (redis/scripts.ts).
-- @include redis/when-full
-- @include redis/ledger
-- @include redis/batch
-- @include redis/stored-bytes
-- @include intake/acceptance
-- Returns the code, and the entry before. Nothing is booked unless the queue really holds this text (invariant 1).
local function beginOne(key, id, publisher, textHash, payload, now)
  local entry = readEntry(key)
  local code = judge(entry[1], entry[8], entry[9], publisher, textHash)
  if code > 3 then
    return code, entry
  end
  local queued, data = unpack(redis.call('HMGET', payload, ARGV[1], 'data'))
  if queued ~= textHash then
    return queued and 5 or 8
  end
  local turn = {mark = redis.call('HGET', key, 'T')}
  bookAccepted(key, id, publisher, textHash, code, now, #(data or '') + OVERHEAD_BYTES, turn)
  return code, entry
end

local now = clockMs()
local nowText = string.format('%.0f', now)
local items = (#ARGV - 1) / 3
return eachOf(items, function(at)
  local id, publisher, textHash = unpack(ARGV, 3 * at - 1, 3 * at + 1)
  local code, entry = beginOne(entryKeyOf(at), id, publisher, textHash, KEYS[6 + items + at], now)
  if code > 4 then
    return tostring(code)
  elseif code < 4 then
    return code .. ',' .. nowText .. ',queued,,' .. nowText .. ',0,0,'
  end
  return writeEntry(entry, nowText)
end)
