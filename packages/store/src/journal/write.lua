-- Appends what steps have written, and renews their leases, many in one call.
-- 1. A step whose turn is over is told so.
-- 2. A sequence that was written, or an older one, appends nothing, so a call of unknown fate may be sent again.
-- 3. A step that has ended changes nothing. One whose lease has only run out was slow, and runs again.
-- ARGV: 5 for each: 1 id, 2 step, 3 sequence, 4 `1` if there is a text, 5 the text
-- Clock: Redis'. TTL: none.
-- Returns for each a code of JOURNALED_CODES in redis/scripts.ts.
-- @include redis/when-full
-- @include redis/ledger
-- @include redis/batch
-- @include journal/drop-turn
-- @include journal/turn
local MEMBERS = 5
local now = clockMs()

return eachOf(#ARGV / MEMBERS, function(at)
  local id, step, sequence, hasText, text = unpack(ARGV, MEMBERS * (at - 1) + 1, MEMBERS * at)
  local publisher, lease, known, wait, bytes =
    unpack(redis.call('HMGET', turnKeyOf(id), 'p', 'l' .. step, 's' .. step, 'w', 'b'))
  if not publisher then
    return '0'
  elseif lease then
    if hasText == '1' then
      appendText(id, step, sequence, text, known, bytes)
    end
    renewLease(id, step, wait, now)
  end
  return '1'
end)
