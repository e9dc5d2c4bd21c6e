-- Accepts acknowledgments: looks each one up and, if it is acceptable, queues it and books it.
-- 1. Queue first, then ledger (invariant 2), in one step: Redis runs nothing in between, and writes the effects of a
--    script to its file as one transaction.
-- 2. Only what the queue holds is booked (invariant 1): the queue may hold another text under this id.
-- 3. If Redis refuses a command (it is full, or a replica), only that acknowledgment fails.
-- KEYS: 8 to 16 the queue's own, in the order that `queueJob` reads
-- ARGV: 1 prefix of entry keys, 2 prefix of job keys, 3 `1` if unknown ids are accepted;
--       then for each: id, publisher, fingerprint of the text, job's id, job's data
-- Clock: Redis', one reading for all. TTL: removed from a missed entry that is acknowledged after all.
-- Returns for each one of (codes are in redis/scripts.ts):
--   accepted: the text `code,now in ms,time of the injection or nothing`
--   refused: the text `code`
--   a repeat: the fields and values of its entry
--   failed: an error (3)
-- @include bullmq/queue-job
-- @include redis/ledger
-- @include redis/batch
-- @include intake/acceptance
local acceptsUnknown = ARGV[3] == '1'
local queueKeys = {unpack(KEYS, 8)}
-- As a text: Redis would write a number as a text at each use.
local nowText = string.format('%.0f', clockMs())

local function accept(at)
  local id, publisher, textHash, jobId, data = unpack(ARGV, 5 * at - 1, 5 * at + 3)
  local key = ARGV[1] .. id
  local state, owner, knownHash, recorded = unpack(redis.call('HMGET', key, 's', 'p', 't', 'r'))
  local code = judge(state, owner, knownHash, publisher, textHash)
  if code == 4 then
    return redis.call('HGETALL', key)
  elseif code > 4 then
    return tostring(code)
  elseif code == 3 and not acceptsUnknown then
    return '9'
  end
  local queued = queueJob(queueKeys, ARGV[2], jobId, textHash, data, nowText)
  if queued ~= textHash then
    return queued and '5' or '8'
  end
  bookAccepted(key, id, publisher, textHash, code, nowText)
  return code .. ',' .. nowText .. ',' .. (recorded or '')
end

return eachOf((#ARGV - 3) / 5, accept)
