-- The keys of every script on entries, and the counters. All keys share the hash tag of one partition.
local entryKey = KEYS[1]    -- hash: one ad response
local awaitingKey = KEYS[2] -- zset: id by deadline
local queuedKey = KEYS[3]   -- zset: id by the time when it was queued
local deadKey = KEYS[4]     -- zset: id by the time when it died
local gaugesKey = KEYS[5]   -- hash: publisher|state to the number of entries that are, or ended, in it
local totalsKey = KEYS[6]   -- hash: counter|publisher|label to its value
local outboxKey = KEYS[7]   -- zset: tasks that are still to be done on the queue, by the time when each is due

-- Next attempts by Redis' clock. The queue delays a job by its worker's clock. If that clock was ahead, the attempt is
-- overdue by this one, and a worker brings the job back (maintenance/overdue-attempts.lua).
local dueKey = queuedKey .. ':due' -- zset: id by the time of its next attempt

-- The ledger's clock is Redis' own, so that skew between machines moves no deadline. In µs, and in ms.
local function clockUs()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
local function clockMs()
  return math.floor(clockUs() / 1000)
end

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

-- What a worker needs to know of an entry before it makes an attempt.

-- State, queued, accepted, next attempt, attempts, failed attempts, reason of death, publisher, fingerprint of its text,
-- log of its attempts.
local function readEntry(key)
  return redis.call('HMGET', key, 's', 'q', 'a', 'w', 'n', 'f', 'x', 'p', 't', 'l')
end

-- A time further after now than this was written before Redis' clock was set back. Small corrections of a clock don't count.
local SET_BACK_MS = 1000

-- When the last attempt in a log was booked, and with it the time of the next one; 0 if there is none.
local function bookedAt(log)
  return tonumber(string.match(log or '', '(%d+),[^\n]*\n$')) or 0
end

-- The time of the next attempt. It is left out if Redis' clock was set back since it was booked: then nobody knows how much
-- of the wait has passed, and the queue has held the job back already.
local function nextAttempt(wait, log, now)
  return wait and (tonumber(wait) <= now or bookedAt(log) <= now + SET_BACK_MS) and wait or ''
end

-- As a text: `4,now,state,next attempt,queued,attempts,failed attempts,reason of death`, times in ms, '' for what is
-- missing. A nested list would take longer to write than all the rest. 4 is the code of a repeat.
local function writeEntry(entry, nowText)
  return '4,' .. nowText .. ',' .. entry[1] .. ',' .. nextAttempt(entry[4], entry[10], tonumber(nowText)) .. ',' .. (entry[2] or entry[3] or '') .. ','
    .. (entry[5] or '0') .. ',' .. (entry[6] or '0') .. ',' .. (entry[7] or '')
end
