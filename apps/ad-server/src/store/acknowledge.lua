-- Records the first acknowledgment of an ad response, counts it and settles its money, all in one step. Every later
-- acknowledgment is refused.
-- KEYS[1..7] see money.lua   KEYS[8] response hash
-- ARGV[1] publisher   ARGV[2] id for the acknowledgment   ARGV[3] verdict (ok | no_ad_used)
-- ARGV[4] current budget of the ad; 0 if the catalogue no longer has the ad
-- ARGV[5] whether the answer marks the ad as one: 1 or 0; empty if the verdict is no_ad_used
-- ARGV[6] where the ad links to: landing, foreign or none; empty if the verdict is no_ad_used
-- Returns {code, ack id, verdict}. Ack id and verdict are those of the first acknowledgment, or empty:
--   0 recorded   1 unknown response   2 other publisher   3 not acknowledgeable   4 already acknowledged
-- Invariant: ack_id is written once, and `acknowledgments:<verdict>` grows in the same step.
-- The lifetime of the response stays as it is. Every call for a known response adds to `posts`.
-- @include money

-- After its window a reservation has ended. An `ok` that comes later is paid only if the budget still has room.
local function hasRoom(held)
  local known = redis.call('HMGET', adPrefix .. held.ad, 'spent', 'reserved')
  return (tonumber(known[1]) or 0) + (tonumber(known[2]) or 0) + held.price <= tonumber(ARGV[4])
end

-- Returns how much was paid.
local function settle(held, isHeld, verdict)
  report(held, verdict, 1)
  if ARGV[5] == '1' then
    report(held, 'disclosed', 1)
  end
  if ARGV[6] == 'foreign' then
    report(held, 'foreign_links', 1)
  end
  report(held, isHeld and 'pending' or 'expired', -1)
  if isHeld then
    hold(held, -held.price)
  end
  if verdict == 'ok' and (isHeld or hasRoom(held)) then
    charge(held)
    return held.price
  end
  if verdict == 'ok' then
    report(held, 'unpaid', 1)
    count('unpaid', 1)
  elseif isHeld then
    release(held)
  end
  return 0
end

local known = redis.call('HMGET', KEYS[8], 'outcome', 'publisher', 'ack_id', 'verdict', 'reservation')
if not known[1] then
  return {1, '', ''}
end
-- A full Redis refuses what needs memory only before a script's first write. This one changes nothing (docs/adr/0040).
redis.call('DEL', KEYS[1] .. ':none')
redis.call('HINCRBY', KEYS[8], 'posts', 1)
if known[2] ~= ARGV[1] then
  return {2, '', ''}
end
if known[1] ~= 'ok' then
  return {3, '', ''}
end
if known[3] then
  return {4, known[3], known[4]}
end
count('acknowledgments:' .. ARGV[3], 1)
if ARGV[5] ~= '' then
  redis.call('HSET', KEYS[8], 'disclosed', ARGV[5], 'link', ARGV[6])
  count('links:' .. ARGV[6], 1)
  count(ARGV[5] == '1' and 'disclosures:true' or 'disclosures:false', 1)
end
local isHeld = redis.call('ZREM', reservationsKey, known[5]) == 1
local paid = settle(reservationOf(known[5]), isHeld, ARGV[3])
redis.call('HSET', KEYS[8], 'ack_id', ARGV[2], 'verdict', ARGV[3], 'paid_micros', paid)
return {0, ARGV[2], ARGV[3]}
