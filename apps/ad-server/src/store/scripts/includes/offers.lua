-- Whether an ad can be served now. An offer is what money/offer-terms.ts makes of an ad and its price.
-- An ad may be this far ahead of its plan: traffic comes in waves, and no plan is good to the minute.
local AHEAD_MS = 3600000

local function fundsOf(ad, day)
  local known = redis.call('HMGET', adPrefix .. ad, 'spent', 'reserved', 'day', 'today')
  local today = known[3] == day and tonumber(known[4]) or 0
  return {committed = (tonumber(known[1]) or 0) + (tonumber(known[2]) or 0), today = today}
end

-- What may have been committed today by now. With an end: what was left this morning, evenly until then.
-- Without one: an equal share of the budget each day. Never less than the head start.
local function allowance(offer, funds, now)
  local pace = offer.pace
  local from = math.max(now - now % DAY_MS, pace.from_ms or 0)
  local micros, untilMs = offer.budget / pace.days, from + DAY_MS
  if pace.until_ms then
    micros, untilMs = offer.budget - (funds.committed - funds.today), pace.until_ms
  end
  local share = math.min(1, (now - from + AHEAD_MS) / math.max(1, untilMs - from))
  return math.max(micros * share, pace.head_start)
end

local function isCapped(offer, session, now)
  local key = capPrefix .. offer.ad .. ':' .. session
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now - offer.cap.window_ms)
  return redis.call('ZCARD', key) >= offer.cap.per_session
end

-- Why an offer can't be taken: no_budget, capped or paced; nil if it can.
local function obstacleTo(offer, session, now)
  local funds = fundsOf(offer.ad, string.format('%.0f', dayOf(now)))
  if funds.committed + offer.price > offer.budget then
    return 'no_budget'
  end
  if offer.cap and isCapped(offer, session, now) then
    return 'capped'
  end
  if offer.pace and funds.today + offer.price > allowance(offer, funds, now) then
    return 'paced'
  end
end
