-- Takes acknowledgments: looks each one up, and if it is to be accepted queues it and books it (docs/adr/0020).
-- 1. Queue first, then ledger (invariant 2), and both in one step: nothing runs in between, and Redis writes what a
--    script did to its file as one transaction.
-- 2. Booked is what the queue holds (invariant 1): it may hold another text under this id.
-- 3. A command that Redis refuses (no room, a replica) concerns one acknowledgment: the others are taken.
-- KEYS: 8 to 16 the queue's own, as `queueJob` wants them
-- ARGV: 1 prefix of entry keys, 2 prefix of job keys, 3 `1` if unknown ids are taken;
--       then of each: id, publisher, fingerprint of the text, job's id, job's data
-- Clock: Redis', one reading for all. TTL: lifted from a missed record that is acknowledged after all.
-- Returns for each {code, now in ms, time of the injection if known} if it was accepted, {code, now in ms, fields and
-- values of the entry} of a repeat, {code} of a refusal, {0, Redis' words} of 3. Codes are in reply-codes.ts.
-- @include queue-insertion
-- @include books
-- @include acceptance
local takesUnknown = ARGV[3] == '1'
local queueKeys = {unpack(KEYS, 8)}
local now = clockMs()

-- What is counted in this call, written once in the end: few publishers, many acknowledgments.
local sums = {[gaugesKey] = {}, [totalsKey] = {}}
add = function(key, field, by)
  sums[key][field] = (sums[key][field] or 0) + by
end

local function take(id, publisher, textHash, jobId, data)
  local key = ARGV[1] .. id
  local state, owner, knownHash, recorded = unpack(redis.call('HMGET', key, 's', 'p', 't', 'r'))
  local code = judge(state, owner, knownHash, publisher, textHash)
  if code == 4 then
    return {code, now, unpack(redis.call('HGETALL', key))}
  elseif code > 4 then
    return {code}
  elseif code == 3 and not takesUnknown then
    return {9}
  end
  local queued = queueJob(queueKeys, ARGV[2], jobId, textHash, data, now)
  if queued ~= textHash then
    return {queued and 5 or 8}
  end
  bookAccepted(key, id, publisher, textHash, code, now)
  return {code, now, recorded}
end

local replies = {}
for at = 4, #ARGV, 5 do
  local isDone, reply = pcall(take, unpack(ARGV, at, at + 4))
  table.insert(replies, isDone and reply or {0, type(reply) == 'table' and reply.err or tostring(reply)})
end
for key, fields in pairs(sums) do
  for field, by in pairs(fields) do
    redis.call('HINCRBY', key, field, by)
  end
end
return replies
