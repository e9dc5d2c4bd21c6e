-- Publishers take turns in the queue, one job each, however many jobs a publisher has (docs/adr/0037).
-- BullMQ takes jobs from its list first, in their order, and then from its sorted set, the least score first. All that
-- BullMQ makes wait comes to the list: new jobs, delayed ones, failed ones that are retried, stalled ones. From there
-- this moves jobs to the sorted set, with their turn as score.
-- 1. A job's turn is the one after its publisher's last, but at least the one that is taken now. So a publisher's jobs
--    keep their order, one without a backlog is next, and one with a backlog isn't passed for ever.
-- 2. The list is only left as it is if it is short and nobody waits in the sorted set.
-- 3. A job is always in one of the two places, also if Redis refuses a command.
-- 4. The rest is left for another call once the jobs' data are many bytes, so that Redis isn't held up.
local LIST_SHORT = 50
local DATA_BYTES_MAX = 2 * 1024 * 1024

-- Returns the publisher of a job, and how many bytes were read for that. A job of another form than `DeliveryJob` of contract has
-- the publisher ''.
local function publisherOfJob(jobKey)
  local data = redis.call('HGET', jobKey, 'data') or ''
  return string.match(data, '^{"v":%d+,"adResponseId":"[%x-]+","adAckId":"[%x-]+","publisher":"([^"]*)"') or '', #data
end

-- keys: BullMQ's list, its sorted set, the turns: a hash of each publisher's last one while anybody waits in turn.
-- jobPrefix: with a job's id it makes the key of the job's payload. publishers: by a job's id, as far as they are known.
-- Moves at most `max` jobs, the oldest first, and `max` is at most 2000. Returns 1 if the list
-- has more, else 0.
local function giveTurns(keys, jobPrefix, publishers, max)
  local listKey, sortedKey, turnsKey = unpack(keys)
  local length = redis.call('LLEN', listKey)
  local taken = redis.call('ZRANGE', sortedKey, 0, 0, 'WITHSCORES')[2]
  if length == 0 or (not taken and length <= LIST_SHORT) then
    return 0
  end
  local last, turns, moved, bytes = {}, {}, 0, 0
  local ids = redis.call('LRANGE', listKey, -max, -1)
  while moved < #ids and bytes < DATA_BYTES_MAX do
    local id = ids[#ids - moved]
    local publisher, read = publishers[id], 0
    if not publisher then
      publisher, read = publisherOfJob(jobPrefix .. id)
    end
    local before = last[publisher] or taken and redis.call('HGET', turnsKey, publisher) or 0
    last[publisher] = math.max(before + 1, tonumber(taken or 1))
    turns[#turns + 1] = last[publisher]
    turns[#turns + 1] = id
    moved, bytes = moved + 1, bytes + read
  end
  -- During intake a full Redis refuses the first of these two, and so ends the script.
  redis.call('ZADD', sortedKey, unpack(turns))
  redis.call('LTRIM', listKey, 0, -moved - 1)
  if not taken then
    redis.call('DEL', turnsKey)
  end
  for publisher, turn in pairs(last) do
    redis.call('HSET', turnsKey, publisher, turn)
  end
  return moved < length and 1 or 0
end
