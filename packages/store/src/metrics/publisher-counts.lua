-- The counts of some publishers, all at one moment: so the books of each balance (docs/state-machine.md). The caller asks
-- for a few publishers at a time, because other clients of Redis wait meanwhile.
-- KEYS: as in redis/ledger.lua
-- ARGV: how many states, the states; how many counters, each as name and label; how many reasons, the reasons of death;
--       then the publishers
-- Writes nothing.
-- Returns for each publisher a text: states, counters, current dead letters by reason, and the bytes that count against
-- queued_bytes, dead_bytes and unknown_bytes, in that order, with commas.
-- A count that doesn't exist is empty.
-- @include redis/ledger
-- @include redis/stored-bytes
-- @include dead-letters/dead-index
local at = 0
local function read()
  at = at + 1
  return ARGV[at]
end
local function list()
  local items = {}
  for item = 1, tonumber(read()) do
    items[item] = read()
  end
  return items
end
local states = list()
local counters = {}
for counter = 1, tonumber(read()) do
  counters[counter] = {read(), read()}
end
local reasons = list()

local function append(values, more)
  for _, value in ipairs(more) do
    values[#values + 1] = value or ''
  end
end

local QUOTAS = {'queued_bytes', 'dead_bytes', 'unknown_bytes'}
local function storedBytesOf(publisher)
  local sums = {0, 0, 0}
  for _, key in ipairs(storedKeys()) do
    for at, quota in ipairs(QUOTAS) do
      sums[at] = sums[at] + (redis.call('HGET', key, publisher .. '|' .. quota) or 0)
    end
  end
  for at, sum in ipairs(sums) do
    sums[at] = string.format('%.0f', sum)
  end
  return sums
end

local function countsOf(publisher)
  local gauges, totals, dead = {}, {}, {}
  for item, state in ipairs(states) do
    gauges[item] = publisher .. '|' .. state
  end
  for item, counter in ipairs(counters) do
    totals[item] = counter[1] .. '|' .. publisher .. '|' .. counter[2]
  end
  for item, reason in ipairs(reasons) do
    dead[item] = redis.call('ZCARD', deadKindKey(publisher .. '|' .. reason, '', ''))
  end
  local values = {}
  append(values, redis.call('HMGET', gaugesKey, unpack(gauges)))
  append(values, redis.call('HMGET', totalsKey, unpack(totals)))
  append(values, dead)
  append(values, storedBytesOf(publisher))
  return table.concat(values, ',')
end

local replies = {}
while at < #ARGV do
  replies[#replies + 1] = countsOf(read())
end
return replies
