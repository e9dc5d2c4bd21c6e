-- Keys and steps shared by every script. All keys share the hash tag of one partition.
local entryKey = KEYS[1]    -- hash: one ad response
local awaitingKey = KEYS[2] -- zset: id by deadline
local queuedKey = KEYS[3]   -- zset: id by the time it was queued
local deadKey = KEYS[4]     -- zset: id by the time it died
local gaugesKey = KEYS[5]   -- hash: publisher|state to how many are, or ended, there
local totalsKey = KEYS[6]   -- hash: counter|publisher|label to its value
local payloadKey = KEYS[7]  -- zset: work still to be done on queue payloads, by when it is due

-- @include clock

-- Adds to a gauge or a total. A script that counts much may put another function here.
local add = function(key, field, by)
  redis.call('HINCRBY', key, field, by)
end

local function count(name, publisher, label)
  add(totalsKey, name .. '|' .. publisher .. '|' .. (label or ''), 1)
end

-- Each move between states changes the state and both of its counts, or none.
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
