-- Books one injection, at once with what it costs: the first offer that can be taken is reserved.
-- KEYS[1..7] as in books.lua   KEYS[8] response hash, absent so far
-- ARGV[1] id   ARGV[2] publisher   ARGV[3] mark of the session   ARGV[4] auction | rejected | no_fill
-- ARGV[5] offers as JSON, best first ([] unless auction)
-- ARGV[6] lifetime of the response, ARGV[7] acknowledgment window, ARGV[8] lifetime of the report: ms
-- Returns the place of the offer that was taken, from 1; 0 for none. Clock: Redis.
-- @include books
-- @include offers
local id, publisher, session = ARGV[1], ARGV[2], ARGV[3]
local now = clockMs()
local day = string.format('%.0f', dayOf(now))

local function reserve(offer)
  local ad = adPrefix .. offer.ad
  local held = {id = id, ad = offer.ad, publisher = publisher, day = day, price = offer.price,
    session = offer.cap and session or ''}
  if redis.call('HGET', ad, 'day') ~= day then
    redis.call('HSET', ad, 'day', day, 'today', 0)
  end
  redis.call('HSET', ad, 'advertiser', offer.advertiser)
  redis.call('HINCRBY', ad, 'today', offer.price)
  redis.call('SADD', adsKey, offer.ad)
  hold(held, offer.price)
  if offer.cap then
    local cap = capPrefix .. offer.ad .. ':' .. session
    redis.call('ZADD', cap, now, id)
    redis.call('PEXPIRE', cap, offer.cap.window_ms)
  end
  local text = textOf(held)
  redis.call('ZADD', reservationsKey, now + ARGV[7], text)
  redis.call('HSET', KEYS[8], 'ad', offer.ad, 'reservation', text)
  for field, value in pairs(offer.remembered) do
    redis.call('HSET', KEYS[8], field, value)
  end
end

-- Takes the first offer that can be taken; an auction that nobody wins is told by what stopped the best.
local function sell(offers)
  local firstObstacle
  for place, offer in ipairs(offers) do
    local obstacle = obstacleTo(offer, session, now)
    if not obstacle then
      reserve(offer)
      count('auctions:won', 1)
      return place, offer.ad
    end
    firstObstacle = firstObstacle or obstacle
    count('passed_over:' .. obstacle, 1)
  end
  if firstObstacle then
    count('auctions:' .. firstObstacle, 1)
  end
  return 0, ''
end

local place, ad = sell(cjson.decode(ARGV[5]))
local outcome = ARGV[4]
if outcome == 'auction' then
  outcome = place > 0 and 'ok' or 'no_fill'
end
redis.call('HSET', KEYS[8], 'outcome', outcome, 'publisher', publisher,
  'served_at_ms', string.format('%.0f', now), 'posts', 0)
redis.call('PEXPIRE', KEYS[8], ARGV[6])
count('injections:' .. outcome, 1)

local row = {day = day, publisher = publisher, ad = ad}
report(row, 'requests', 1)
if place > 0 then
  report(row, 'injected', 1)
  report(row, 'pending', 1)
else
  report(row, outcome, 1)
end
redis.call('SADD', publishersKey, publisher)
redis.call('PEXPIREAT', reportPrefix .. day .. ':' .. publisher,
  string.format('%.0f', (dayOf(now) + 1) * DAY_MS + ARGV[8]))
return place
