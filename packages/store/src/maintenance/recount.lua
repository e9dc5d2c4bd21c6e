-- Recounts the bytes of queued and dead entries in small steps, and so mends the counters (redis/stored-bytes.lua). Any worker
-- may run any step at any time, and a step may be done twice: all progress is in Redis.
-- 1. An entry that comes to one of the two states during a recount counts in the new counters at once. So it is enough to go
--    through the queued entries once, then through the dead ones: what is replayed meanwhile has been moved over, too.
-- 2. An entry of an older version has no bytes. They are those of its job.
-- ARGV: 1 most entries of a step, 2 ms from the end of a recount to the next one, 3 prefix of entry keys,
--       4 most bytes of jobs' data that a step reads, 5 number and 6 index (queued, dead) of the step whose entries follow;
--       then for each: id, time in the index, key of its job's payload
-- Clock: Redis'. TTL: none.
-- Returns {number, index, id, time, id, time, …} of the next step; nothing if there is none to do now.
-- @include redis/when-full
-- @include redis/ledger
-- @include redis/stored-bytes
-- @include maintenance/rank-after
local most, pauseMs, entryPrefix, bytesMax = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])
local INDEXES = {queued = queuedKey, dead = deadKey}
local bytesRead = 0

local function measure(key, jobKey)
  local data = redis.call('HGET', jobKey, 'data') or ''
  bytesRead = bytesRead + #data
  return redis.call('HEXISTS', key, 'r') == 1 and 'k' or 'u', #data + OVERHEAD_BYTES
end

local function recountOne(key, jobKey)
  local state, publisher, stored = unpack(redis.call('HMGET', key, 's', 'p', 'b'))
  if not INDEXES[state] or string.match(stored or '', '^%d+') == readRecount() then
    return
  end
  local kind, bytes = releaseBytes(stored, publisher, state)
  if not kind then
    kind, bytes = measure(key, jobKey)
  end
  redis.call('HSET', key, 'b', storeBytes(publisher, state, kind, bytes))
end

-- Returns {id, time, id, time, …} after the place that was reached.
local function nextOf(index)
  local key = INDEXES[index]
  local id, time = unpack(redis.call('HMGET', recountKey, 'id', 'time'))
  local first = id and rankAfter(key, id, time) or 0
  return redis.call('ZRANGE', key, first, first + most - 1, 'WITHSCORES')
end

local now = clockMs()
local number, running, index, ended = unpack(redis.call('HMGET', recountKey, 'number', 'running', 'index', 'ended'))
number = tonumber(number) or 0
if running ~= '1' then
  -- After a step of the clock, an end may lie ahead.
  if ended and math.abs(now - ended) < pauseMs then
    return {}
  end
  number, index = number + 1, 'queued'
  redis.call('HSET', recountKey, 'number', number, 'running', '1', 'index', index)
elseif ARGV[5] == string.format('%d', number) and ARGV[6] == index then
  for at = 7, #ARGV, 3 do
    if bytesRead > bytesMax then
      break
    end
    recountOne(entryPrefix .. ARGV[at], ARGV[at + 2])
    redis.call('HSET', recountKey, 'id', ARGV[at], 'time', ARGV[at + 1])
  end
end

local batch = nextOf(index)
if #batch == 0 and index == 'queued' then
  index = 'dead'
  redis.call('HSET', recountKey, 'index', index)
  redis.call('HDEL', recountKey, 'id', 'time')
  batch = nextOf(index)
end
if #batch == 0 then
  redis.call('HSET', recountKey, 'running', '0', 'ended', now)
  redis.call('HDEL', recountKey, 'id', 'time')
  redis.call('DEL', storedKeyOf(string.format('%d', number - 1)))
end
return {string.format('%d', number), index, unpack(batch)}
