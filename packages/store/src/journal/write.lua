-- Appends what steps have written, and renews their leases, many in one call.
-- 1. A step whose turn is over is told so.
-- 2. A sequence that was written, or an older one, appends nothing, so a call of unknown fate may be sent again.
-- 3. If earlier pieces of the step are missing, a text isn't appended, and the step is told so.
-- 4. If Redis came back without the join of a step, the step joins again, and 3 holds for its text.
-- 5. A step that has ended changes nothing. One whose lease has only run out was slow, and runs again.
-- ARGV: 5 for each: 1 id, 2 step, 3 sequence, 4 `1` if there is a text, 5 the text
-- Clock: Redis'. TTL: none.
-- Returns for each a code of WRITTEN_CODES in redis/scripts.ts.
-- @include redis/when-full
-- @include redis/ledger
-- @include redis/batch
-- @include journal/drop-turn
-- @include journal/turn
local MEMBERS = 5
local now = clockMs()

return eachOf(#ARGV / MEMBERS, function(at)
  local id, step, sequence, hasText, text = unpack(ARGV, MEMBERS * (at - 1) + 1, MEMBERS * at)
  local publisher, last, lease, known, wait, bytes =
    unpack(redis.call('HMGET', turnKeyOf(id), 'p', 'n', 'l' .. step, 's' .. step, 'w', 'b'))
  if not publisher then
    return '0'
  end
  local hasLostJoin = tonumber(step) > tonumber(last)
  if hasLostJoin then
    joinStep(id, step, now)
    wait = nil
  end
  if lease or hasLostJoin then
    local isBehind = hasText == '1' and appendText(id, step, sequence, text, known, bytes)
    renewLease(id, step, wait, now)
    if isBehind then
      return '2'
    end
  end
  return '1'
end)
