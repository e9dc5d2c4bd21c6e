-- The keys of every script on entries, and the counters. All keys share the hash tag of one partition.
local entryKey = KEYS[1]    -- hash: one ad response
local awaitingKey = KEYS[2] -- zset: id by deadline
local queuedKey = KEYS[3]   -- zset: id by the time when it was queued
local deadKey = KEYS[4]     -- zset: id by the time when it died
local gaugesKey = KEYS[5]   -- hash: publisher|state to the number of entries that are, or ended, in it
local totalsKey = KEYS[6]   -- hash: counter|publisher|label to its value
local outboxKey = KEYS[7]   -- zset: tasks that are still to be done on the queue, by the time when each is due

-- @include redis/clock

-- Adds to a gauge or a total. redis/batch.lua puts another function here, which sums up before it writes.
local add = function(key, field, by)
  redis.call('HINCRBY', key, field, by)
end

local function count(name, publisher, label)
  add(totalsKey, name .. '|' .. publisher .. '|' .. (label or ''), 1)
end

-- Changes the two gauges of a move between states. The caller changes the state in the same script.
local function moveCount(publisher, from, to)
  if from then
    add(gaugesKey, publisher .. '|' .. from, -1)
  end
  add(gaugesKey, publisher .. '|' .. to, 1)
end

local function move(key, publisher, from, to)
  moveCount(publisher, from, to)
  redis.call('HSET', key, 's', to)
end
