-- Ends reservations whose acknowledgment window has passed, a bounded batch at a time; each ends once, however
-- many processes sweep.
-- KEYS[1..7] as in books.lua   ARGV[1] most reservations
-- Returns how many ended: as many as asked for means that there may be more. Clock: Redis.
-- @include books
local due = redis.call('ZRANGEBYSCORE', reservationsKey, '-inf', clockMs(), 'LIMIT', 0, ARGV[1])
for _, text in ipairs(due) do
  local held = reservationOf(text)
  redis.call('ZREM', reservationsKey, text)
  hold(held, -held.price)
  giveBack(held)
  report(held, 'pending', -1)
  report(held, 'expired', 1)
  count('expired', 1)
end
return #due
