-- Accepts acknowledgments: looks each one up and, if it is acceptable, queues it and books it.
-- 1. Queue first, then ledger (invariant 2), in one step: Redis runs nothing in between, and writes the effects of a
--    script to its file as one transaction.
-- 2. Only what the queue holds is booked (invariant 1): the queue may hold another text under this id.
-- 3. If Redis refuses a command (it is full, or a replica), only that acknowledgment fails.
-- 4. Jobs that must wait get their turns in the same call. If Redis refuses that, a worker does it later.
-- 5. The quotas are checked in the same step, so they are exact over all gateways. A repeat needs no room.
-- KEYS: 8 to 12 as bullmq/queue-job.lua reads them, 8, 9 and 13 as `giveTurns` reads them
-- ARGV: 1 prefix of entry keys, 2 prefix of job keys, 3 options of jobs, 4 how many bytes all publishers may take together with
--       acknowledgments of known ids, 5 the same of unknown ids, 6 the number of publishers;
--       for each publisher: its id, `1` if an unknown id is accepted, its limits of queued_bytes, dead_bytes and unknown_bytes;
--       then for each acknowledgment: id, publisher, fingerprint of the text, job's id, job's data. Limits are '' if there is none.
--       If the job's data are a number, that is their size, and the call only asks: a large text isn't sent in vain.
-- Clock: Redis', one reading for all. TTL: removed from a missed entry that is acknowledged after all.
-- Returns for each one of (codes are in redis/scripts.ts):
--   accepted: the text `code,now in ms,time of the injection or nothing`
--   there is room, if the call only asks: the text `12`
--   refused: the text `code`, or `code,quota,its limit,its use`
--   a repeat: the fields and values of its entry
--   failed: an error (3)
-- @include bullmq/queue-job
-- @include bullmq/turns
-- @include redis/ledger
-- @include redis/batch
-- @include redis/stored-bytes
-- @include intake/quotas
-- @include intake/acceptance
local RULES, MEMBERS = 5, 5
local publishersCount = tonumber(ARGV[6])
local itemsFrom = 7 + RULES * publishersCount
local publishers = {} -- by the id of their job
-- As a text: Redis would write a number as a text at each use.
local nowText = string.format('%.0f', clockMs())

local rulesOf = {} -- by publisher
for from = 7, itemsFrom - 1, RULES do
  local publisher, acceptsUnknown, queued, dead, unknown = unpack(ARGV, from, from + RULES - 1)
  rulesOf[publisher] = {acceptsUnknown = acceptsUnknown == '1', queued = queued, dead = dead, unknown = unknown}
end

local function accept(at)
  local from = itemsFrom + MEMBERS * (at - 1)
  local id, publisher, textHash, jobId, data = unpack(ARGV, from, from + MEMBERS - 1)
  local key = ARGV[1] .. id
  local state, owner, knownHash, recorded, mark = unpack(redis.call('HMGET', key, 's', 'p', 't', 'r', 'T'))
  local code = judge(state, owner, knownHash, publisher, textHash, mark)
  if code == 4 then
    return redis.call('HGETALL', key)
  elseif code > 4 then
    return tostring(code)
  end
  local rules = rulesOf[publisher]
  if code == 3 and not rules.acceptsUnknown then
    return '9'
  end
  local asked = tonumber(data)
  local bytes = (asked or #data) + OVERHEAD_BYTES
  local refusal = findRefusal(publisher, code == 3, bytes, rules, code == 3 and ARGV[5] or ARGV[4])
  if refusal then
    return refusal
  elseif asked then
    return '12'
  end
  local job = {key = ARGV[2] .. jobId, id = jobId, name = textHash, data = data}
  if queueJob(job, ARGV[3], nowText) ~= textHash then
    return '5'
  end
  publishers[jobId] = publisher
  bookAccepted(key, id, publisher, textHash, code, nowText, bytes, {mark = mark})
  return code .. ',' .. nowText .. ',' .. (recorded or '')
end

local items = (#ARGV - itemsFrom + 1) / MEMBERS
local replies = eachOf(items, accept)
-- It moves more jobs than this call added, so that the list, to which BullMQ adds jobs too, gets shorter.
pcall(giveTurns, {KEYS[8], KEYS[9], KEYS[13]}, ARGV[2], publishers, items + 100)
return replies
