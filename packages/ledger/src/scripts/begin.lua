-- Tells workers how acknowledgments stand whose attempts are to begin, and books those that a crashed gateway
-- couldn't (invariants 2 and 3).
-- KEYS: the entries of all but the first from 8 on, then the queued payloads of all
-- ARGV: 1 field of the payloads that holds a text's fingerprint, then for each its id, publisher and fingerprint
-- Clock: Redis'. TTL: as in accept.lua.
-- Returns for each {code, now in ms, state, next attempt in ms, queued in ms, attempts, failed attempts, reason of
-- death}; codes are in reply-codes.ts, and those that refuse come without the rest.
-- @include books
-- @include batch
-- @include accept
local now = clockMs()
local items = (#ARGV - 1) / 3
return eachOf(items, function(at)
  local from = 3 * at - 1
  local asked = {id = ARGV[from], publisher = ARGV[from + 1], textHash = ARGV[from + 2], field = ARGV[1]}
  local code, stood = acceptOne(entryKeyOf(at), KEYS[6 + items + at], asked, now)
  if code > 4 then
    return {code}
  elseif code < 4 then
    return {code, now, 'queued', false, now, 0, 0, false}
  end
  local state, queuedAt, acceptedAt, wait, attempts, failed, reason = unpack(stood)
  return {code, now, state, wait, queuedAt or acceptedAt, attempts or 0, failed or 0, reason}
end)
