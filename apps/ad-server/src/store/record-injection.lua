-- Books one injection. In the same step it reserves the price of the first offer that can be sold.
-- KEYS[1..7] see money.lua   KEYS[8] response hash, which must not exist yet   KEYS[9] see just-shown.lua
-- ARGV[1] id   ARGV[2] publisher   ARGV[3] hash of the session   ARGV[4] auction | rejected | no_fill
-- ARGV[5] offers as JSON, best first ([] unless auction): OfferTerms of money/auction.ts
-- ARGV[6] lifetime of the response, ARGV[7] acknowledgment window, ARGV[8] lifetime of the report: ms
-- Returns the place of the offer that was sold, counted from 1; 0 if none was sold. Clock: Redis.
-- @include money
local id, publisher, session = ARGV[1], ARGV[2], ARGV[3]
local now = clockMs()
local day = string.format('%.0f', dayOf(now))
-- @include just-shown

-- An ad may be this far ahead of its pacing: traffic comes in waves.
local AHEAD_MS = 3600000

local function fundsOf(ad)
  local known = redis.call('HMGET', adPrefix .. ad, 'spent', 'reserved', 'day', 'today')
  local today = known[3] == day and tonumber(known[4]) or 0
  return {committed = (tonumber(known[1]) or 0) + (tonumber(known[2]) or 0), today = today}
end

-- What pacing lets an ad commit today until now. With an end: the budget that was left this morning, spread evenly
-- until the end. Without an end: an equal share of the budget for each day. Never less than the head start.
local function allowance(offer, funds)
  local pace = offer.pace
  local from = math.max(now - now % DAY_MS, pace.from_ms or 0)
  local micros, untilMs = offer.budget / pace.days, from + DAY_MS
  if pace.until_ms then
    micros, untilMs = offer.budget - (funds.committed - funds.today), pace.until_ms
  end
  local share = math.min(1, (now - from + AHEAD_MS) / math.max(1, untilMs - from))
  return math.max(micros * share, pace.head_start)
end

local function isCapped(offer)
  local key = capPrefix .. offer.ad .. ':' .. session
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now - offer.cap.window_ms)
  return redis.call('ZCARD', key) >= offer.cap.per_session
end

-- Why an offer can't be sold: no_budget, capped or paced; nil if it can.
local function obstacleTo(offer)
  local funds = fundsOf(offer.ad)
  if funds.committed + offer.price > offer.budget then
    return 'no_budget'
  end
  if offer.cap and isCapped(offer) then
    return 'capped'
  end
  if offer.pace and funds.today + offer.price > allowance(offer, funds) then
    return 'paced'
  end
end

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
  rememberShown(offer)
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

-- Sells the first offer that can be sold. If none can, the auction is counted under the obstacle to the best offer.
local function sell(offers)
  local obstacles = {}
  for _, turn in ipairs(inTurn(offers)) do
    local obstacle = obstacleTo(turn.offer)
    if not obstacle then
      reserve(turn.offer)
      count('auctions:won', 1)
      return turn.place, turn.offer.ad
    end
    obstacles[turn.place] = obstacle
    count('passed_over:' .. obstacle, 1)
  end
  if obstacles[1] then
    count('auctions:' .. obstacles[1], 1)
  end
  return 0, ''
end

-- The first write needs memory, so a full Redis refuses the script as a whole. It takes nothing new (docs/adr/0040).
redis.call('HSET', KEYS[8], 'publisher', publisher, 'served_at_ms', string.format('%.0f', now), 'posts', 0)
redis.call('PEXPIRE', KEYS[8], ARGV[6])
local place, ad = sell(cjson.decode(ARGV[5]))
local outcome = ARGV[4]
if outcome == 'auction' then
  outcome = place > 0 and 'ok' or 'no_fill'
end
redis.call('HSET', KEYS[8], 'outcome', outcome)
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
