-- Takes acknowledgments: looks each one up, and if it is to be accepted queues it and books it (docs/adr/0020).
-- 1. Queue first, then ledger (invariant 2), and both in one step: nothing runs in between, and Redis writes what a
--    script did to its file as one transaction.
-- 2. Booked is what the queue holds (invariant 1): it may hold another text under this id.
-- 3. A command that Redis refuses (no room, a replica) concerns one acknowledgment: the others are taken.
-- KEYS: 8 to 16 the queue's own, as `queueJob` wants them
-- ARGV: 1 prefix of entry keys, 2 prefix of job keys, 3 `1` if unknown ids are taken;
--       then of each: id, publisher, fingerprint of the text, job's id, job's data
-- Clock: Redis', one reading for all. TTL: lifted from a missed record that is acknowledged after all.
-- Returns for each a text, `code,now in ms,time of the injection or nothing` if it was accepted, `code` of a refusal; the
-- fields and values of the entry of a repeat; an error of 3. Codes are in reply-codes.ts.
-- @include queue-insertion
-- @include books
-- @include batch
-- @include acceptance
local takesUnknown = ARGV[3] == '1'
local queueKeys = {unpack(KEYS, 8)}
-- As a text: a number would be made one wherever it is written.
local nowText = string.format('%.0f', clockMs())

local function take(at)
  local id, publisher, textHash, jobId, data = unpack(ARGV, 5 * at - 1, 5 * at + 3)
  local key = ARGV[1] .. id
  local state, owner, knownHash, recorded = unpack(redis.call('HMGET', key, 's', 'p', 't', 'r'))
  local code = judge(state, owner, knownHash, publisher, textHash)
  if code == 4 then
    return redis.call('HGETALL', key)
  elseif code > 4 then
    return tostring(code)
  elseif code == 3 and not takesUnknown then
    return '9'
  end
  local queued = queueJob(queueKeys, ARGV[2], jobId, textHash, data, nowText)
  if queued ~= textHash then
    return queued and '5' or '8'
  end
  bookAccepted(key, id, publisher, textHash, code, nowText)
  return code .. ',' .. nowText .. ',' .. (recorded or '')
end

return eachOf((#ARGV - 3) / 5, take)
