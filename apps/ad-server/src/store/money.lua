-- Included by the three scripts: their first seven keys, and the steps by which they move money and count.
-- keys.ts says what each key holds. The prefixes carry the hash tag of all keys, so the keys that are made from them
-- lie in the same slot.
--
-- Invariants. Every script keeps each of them as a whole.
-- 1. An ad's spent + reserved never grows past the budget that the catalogue gives it at that moment.
-- 2. An ad's reserved is the sum of its reservations. Each reservation ends once: charged, released or expired.
-- 3. A reservation counts in the report under the day of its injection, whenever it ends.
local countsKey = KEYS[1]
local reservationsKey = KEYS[2]
local adsKey = KEYS[3]
local publishersKey = KEYS[4]
local adPrefix = KEYS[5]
local reportPrefix = KEYS[6]
local capPrefix = KEYS[7]

-- The only clock is that of Redis. A day is a day in UTC, as its number since 1970.
local DAY_MS = 86400000
local function clockMs()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
local function dayOf(now)
  return math.floor(now / DAY_MS)
end

-- A reservation is stored as text that holds all of it. So it can end even after its response is forgotten.
local function textOf(held)
  return table.concat({held.id, held.ad, held.publisher, held.day, held.session,
    string.format('%.0f', held.price)}, '|')
end

local function reservationOf(text)
  local id, ad, publisher, day, session, price =
    string.match(text, '^([^|]*)|([^|]*)|([^|]*)|([^|]*)|([^|]*)|([^|]*)$')
  return {id = id, ad = ad, publisher = publisher, day = day, session = session, price = tonumber(price)}
end

-- Adds to a counter of the report; `row` has the day, the publisher and the ad ('' for no ad).
local function report(row, counter, by)
  redis.call('HINCRBY', reportPrefix .. row.day .. ':' .. row.publisher, row.ad .. '|' .. counter, by)
end

local function count(name, by)
  redis.call('HINCRBY', countsKey, name, by)
end

-- Adds to the reserved money of an ad, in every place that shows it.
local function hold(held, micros)
  redis.call('HINCRBY', adPrefix .. held.ad, 'reserved', micros)
  count('reserved_micros', micros)
  report(held, 'reserved_micros', micros)
end

local function charge(held)
  redis.call('HINCRBY', adPrefix .. held.ad, 'spent', held.price)
  count('spend_micros', held.price)
  report(held, 'spent_micros', held.price)
end

-- An impression that won't be paid no longer counts towards the session's cap or the day's pacing.
local function release(held)
  if held.session ~= '' then
    redis.call('ZREM', capPrefix .. held.ad .. ':' .. held.session, held.id)
  end
  local plan = redis.call('HMGET', adPrefix .. held.ad, 'day', 'today')
  if plan[1] == held.day then
    -- Not below zero: if the clock was set back over midnight, this day began twice and its sum began anew.
    local today = math.max(0, (tonumber(plan[2]) or 0) - held.price)
    redis.call('HSET', adPrefix .. held.ad, 'today', string.format('%.0f', today))
  end
end
