-- Keys and steps shared by the scripts on money: see keys.ts for what the keys hold. The prefixes bear the
-- hash tag of all keys, so that what is made of them lies in the same slot.
local countsKey = KEYS[1]
local reservationsKey = KEYS[2]
local adsKey = KEYS[3]
local publishersKey = KEYS[4]
local adPrefix = KEYS[5]
local reportPrefix = KEYS[6]
local capPrefix = KEYS[7]

-- @include clock

-- Invariants, each kept by every script as a whole:
-- 1. An ad's spent + reserved never grows past the budget that the catalogue gives it at that moment.
-- 2. The reserved of an ad is the sum of its reservations; each ends once: charged, released or expired.
-- 3. A reservation's numbers stand in the report under the day of its injection, whenever it ends.

-- A reservation as text, which is its own record: it can be ended also when the response is forgotten.
local function textOf(held)
  return table.concat({held.id, held.ad, held.publisher, held.day, held.session,
    string.format('%.0f', held.price)}, '|')
end

local function reservationOf(text)
  local id, ad, publisher, day, session, price =
    string.match(text, '^([^|]*)|([^|]*)|([^|]*)|([^|]*)|([^|]*)|([^|]*)$')
  return {id = id, ad = ad, publisher = publisher, day = day, session = session, price = tonumber(price)}
end

-- Adds to a number of the report; `of` names the row by day, publisher and ad ('' for none).
local function report(of, counter, by)
  redis.call('HINCRBY', reportPrefix .. of.day .. ':' .. of.publisher, of.ad .. '|' .. counter, by)
end

local function count(name, by)
  redis.call('HINCRBY', countsKey, name, by)
end

-- Adds to what is reserved for an ad, in every place that shows it.
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

-- An impression that won't be paid takes no room: neither in the session's cap nor in the day's plan.
local function giveBack(held)
  if held.session ~= '' then
    redis.call('ZREM', capPrefix .. held.ad .. ':' .. held.session, held.id)
  end
  local plan = redis.call('HMGET', adPrefix .. held.ad, 'day', 'today')
  if plan[1] == held.day then
    -- A clock that was set back over midnight and is right again began this day twice.
    local today = math.max(0, (tonumber(plan[2]) or 0) - held.price)
    redis.call('HSET', adPrefix .. held.ad, 'today', string.format('%.0f', today))
  end
end
