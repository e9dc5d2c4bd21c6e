-- Completes jobs: books the final settlement of each one's attempt, if there is one, has BullMQ complete the job and
-- fetch the next one, and reads the entry of the fetched job.
-- 1. The ledger first, then the queue (invariant 3): if booking fails, the job isn't completed, and only that job gets
--    the error.
-- 2. A booking is returned even if the queue's step fails: its error is returned beside it.
-- 3. An entry is returned only if all is in order: it is queued, with the text that the queue holds. delivery/begin.lua
--    judges all other cases.
-- 4. A large body of the fetched job stays in Redis (bullmq/leave-payload.lua).
-- KEYS: 8 to 21 the queue's own, in the order that `completeJob` reads
-- ARGV: 1 to 3 as in delivery/settlement.lua, 4 prefix of entry keys, 5 prefix of job keys, 6 the worker's time in ms;
--       Then eleven for each: the job's id, its lock's token, 1 to fetch another job, and the arguments 1 to 8 of
--       delivery/settle.lua (all '' if there is nothing to book).
-- Clock: Redis' for the ledger, the worker's for the queue. TTL: an entry that ends here lives for the retention.
-- Returns for each {reply of delivery/settle.lua or '', entry or '', reply of `completeJob` or its error}, or an error (1).
-- An entry is its publisher, a comma, and the text that `writeEntry` in redis/ledger.lua writes.
-- @include redis/when-full
-- @include bullmq/complete-job
-- @include bullmq/leave-payload
-- @include redis/ledger
-- @include redis/batch
-- @include redis/stored-bytes
-- @include dead-letters/dead-index
-- @include delivery/settlement
local MEMBERS = 11
local queueKeys = {unpack(KEYS, 8)}

local function readFetched(completed)
  local id, fingerprint = fetchedJob(completed)
  if not id then
    return ''
  end
  local entry = readEntry(ARGV[4] .. string.gsub(id, '-', ''))
  if entry[1] ~= 'queued' or entry[9] ~= fingerprint then
    return ''
  end
  return entry[8] .. ',' .. writeEntry(entry, nowText)
end

local replies = eachOf((#ARGV - 6) / MEMBERS, function(at)
  local from = 7 + MEMBERS * (at - 1)
  local jobId, token, fetchNext, id = unpack(ARGV, from, from + 3)
  local booked = id == '' and '' or settle(ARGV[4] .. id, unpack(ARGV, from + 3, from + 10))
  local completed = replyOf(pcall(completeJob, queueKeys, ARGV[5], jobId, token, fetchNext, ARGV[6]))
  -- A job may be fetched by now. If its entry can't be read, the worker gets the job without it.
  local isOk, entry = pcall(readFetched, completed)
  return {booked, isOk and entry or '', leavePayload(completed)}
end)
leaveQueued()
return replies
