-- Gives ad responses of a publisher that is gone to another one: those that await, are queued, or are dead letters.
-- 1. Entry, job, indexes and counters change in one step, so a worker meets the old publisher everywhere or the new one.
--    Times stay as they are in the entry. In the indexes of dead and queued ones, those that were counted for a bulk replay or bulk
--    discard get a later time, because nobody has counted them as the other publisher's.
-- 2. One whose job an attempt holds is left as it is. So is one that has left its publisher or these states: a repeat
--    changes nothing.
-- 3. The fingerprint of a text contains its publisher, so it goes. Any text then counts as a repeat (intake/acceptance.lua):
--    without the text, there is no fingerprint for the new publisher.
--    The session's hash stays, and beside it the publisher whose session it is, so that an erasure finds it under both.
-- 4. The rest is left for another call once the jobs' data are many bytes, so that Redis isn't held up.
-- KEYS: 8 the audit
-- ARGV: 1 publisher that is gone, 2 the other one, 3 operator, 4 prefix of entry keys, 5 prefix of the keys of parked
--       acknowledgments, 6 most bytes of jobs' data; then for each its id and the key of its job's payload
-- Clock: Redis'. TTL: none.
-- Returns {how many were looked at, awaiting, queued and dead ones that were adopted, how many an attempt holds}.
-- @include redis/when-full
-- @include redis/ledger
-- @include redis/stored-bytes
-- @include dead-letters/dead-index
-- @include dead-letters/audit
local from, to, entryPrefix, parkedPrefix = ARGV[1], ARGV[2], ARGV[4], ARGV[5]
local adopted = {awaiting = 0, queued = 0, dead = 0}
local bytes, held = 0, 0

-- Of a job of another form than `DeliveryJob` of contract this returns nil. Then nothing is adopted.
local function withPublisher(data)
  local head, old = string.match(data, '^({"v":%d+,"adResponseId":"[%x-]+","adAckId":"[%x-]+","publisher":")([^"]*)"')
  return old == from and head .. to .. string.sub(data, #head + #old + 1) or nil
end

-- Whether the job follows its entry. A job that is gone needn't.
local function changeJob(jobKey)
  local data = redis.call('HGET', jobKey, 'data')
  local changed = data and withPublisher(data)
  if changed then
    bytes = bytes + #changed
    redis.call('HSET', jobKey, 'data', changed)
  end
  return changed or not data
end

local function moveTime(fromKey, toKey, id)
  local time = redis.call('ZSCORE', fromKey, id)
  if time then
    redis.call('ZADD', toKey, time, id)
    redis.call('ZREM', fromKey, id)
  end
end

local function moveDeath(key, id, reason, code)
  local died = redis.call('ZSCORE', deadKey, id)
  removeDead(id, from, reason, code)
  addDead(key, id, to, reason, code, tonumber(died))
end

local function moveQueued(id)
  moveTime(parkedPrefix .. from, parkedPrefix .. to, id)
  local queuedAt = redis.call('ZSCORE', queuedKey, id)
  if queuedAt then
    redis.call('ZADD', queuedKey, afterCounted(queuedKey, tonumber(queuedAt)), id)
  end
end

local function adopt(id, jobKey)
  local key = entryPrefix .. id
  local state, publisher, reason, code, stored = unpack(redis.call('HMGET', key, 's', 'p', 'x', 'y', 'b'))
  if publisher ~= from or not adopted[state] then
    return
  elseif state ~= 'awaiting' and (redis.call('EXISTS', jobKey .. ':lock') == 1 or not changeJob(jobKey)) then
    held = held + 1
    return
  end
  redis.call('HSET', key, 'p', to)
  redis.call('HDEL', key, 't')
  if redis.call('HEXISTS', key, 'S') == 1 then
    redis.call('HSETNX', key, 'O', from)
  end
  if state ~= 'awaiting' then
    moveBytes(key, stored, from, state, to, state)
  end
  if state == 'queued' then
    moveQueued(id)
  elseif state == 'dead' then
    moveDeath(key, id, reason or '', code or '')
  end
  add(gaugesKey, from .. '|' .. state, -1)
  add(gaugesKey, to .. '|' .. state, 1)
  count('given', from)
  count('adopted', to)
  adopted[state] = adopted[state] + 1
end

local at = 7
while at < #ARGV and bytes < tonumber(ARGV[6]) do
  adopt(ARGV[at], ARGV[at + 1])
  at = at + 2
end
if adopted.awaiting + adopted.queued + adopted.dead > 0 then
  audit(KEYS[8], clockMs(), {by = ARGV[3], action = 'adopt', details = string.format(
    '{"from":"%s","to":"%s","awaiting":%d,"queued":%d,"dead":%d}', from, to, adopted.awaiting, adopted.queued, adopted.dead)})
end
return {(at - 7) / 2, adopted.awaiting, adopted.queued, adopted.dead, held}
