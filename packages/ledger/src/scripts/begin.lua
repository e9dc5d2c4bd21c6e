-- Tells workers how acknowledgments stand whose attempts are to begin, and books those that a crashed gateway
-- couldn't (invariants 2 and 3).
-- KEYS: the entries of all but the first from 8 on, then the queued payloads of all
-- ARGV: 1 field of the payloads that holds a text's fingerprint, then for each its id, publisher and fingerprint
-- Clock: Redis'. TTL: as in accept.lua.
-- Returns a text for each, `code,now,state,next attempt,queued,attempts,failed attempts,reason of death`, times in ms
-- and '' for what is not there: a list of lists would take longer to write than all the rest. Codes are in
-- reply-codes.ts; those that refuse come alone.
-- @include books
-- @include batch
-- @include accept
local now = clockMs()
local nowText = string.format('%.0f', now)
local items = (#ARGV - 1) / 3
return eachOf(items, function(at)
  local id, publisher, textHash = unpack(ARGV, 3 * at - 1, 3 * at + 1)
  local code, stood = acceptOne(entryKeyOf(at), id, publisher, textHash, KEYS[6 + items + at], ARGV[1], now)
  if code > 4 then
    return tostring(code)
  elseif code < 4 then
    return code .. ',' .. nowText .. ',queued,,' .. nowText .. ',0,0,'
  end
  local queuedAt = stood[2] or stood[3] or ''
  return '4,' .. nowText .. ',' .. stood[1] .. ',' .. (stood[4] or '') .. ',' .. queuedAt .. ',' .. (stood[5] or '0')
    .. ',' .. (stood[6] or '0') .. ',' .. (stood[7] or '')
end)
