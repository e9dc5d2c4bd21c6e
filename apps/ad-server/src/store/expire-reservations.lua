-- Ends a bounded batch of the reservations whose acknowledgment window has passed. Each reservation ends once, however
-- many processes sweep.
-- KEYS[1..7] see money.lua   ARGV[1] how many reservations at most
-- Returns how many ended. If that is ARGV[1], there may be more. It fails whenever Redis takes no writes. Clock: Redis.
-- @include money
-- It changes nothing, and shows whether Redis takes writes. A full Redis takes this one (docs/adr/0040).
redis.call('DEL', KEYS[1] .. ':none')
local due = redis.call('ZRANGEBYSCORE', reservationsKey, '-inf', clockMs(), 'LIMIT', 0, ARGV[1])
for _, text in ipairs(due) do
  local held = reservationOf(text)
  redis.call('ZREM', reservationsKey, text)
  hold(held, -held.price)
  release(held)
  report(held, 'pending', -1)
  report(held, 'expired', 1)
  count('expired', 1)
end
return #due
