-- Ends jobs (docs/adr/0023): books the last word on each one's attempt, if there is one, has the queue finish the job and
-- fetch the next one, and looks at how that one stands.
-- 1. The ledger first, then the queue (invariant 3): if booking raises, the job isn't finished, and has that error alone.
-- 2. What is booked is told even if the queue's step raises: its error stands beside.
-- 3. The look tells only of what is in order: queued, with the text that the queue holds. begin.lua judges all else.
-- KEYS: 8 to 21 the queue's own, as `finishJob` wants them
-- ARGV: 1 and 2 as in includes/settlement.lua, 3 prefix of entry keys, 4 prefix of job keys, 5 the worker's time in ms;
--       then for each: job's id, token of its lock, 1 if another job is to be fetched, and the first eight of settle.lua,
--       which are '' if nothing is to be booked
-- Clock: Redis' for the books, the worker's for the queue, as ever. TTL: an entry that ends here lives for the retention.
-- Returns for each {what settle.lua returns or '', look or '', what `finishJob` answered or its error}, or an error of 1.
-- A look is the publisher, a comma, and how the fetched job stands in the words of includes/standing.lua.
-- @include queue-completion
-- @include books
-- @include batch
-- @include dead-letters
-- @include settlement
-- @include standing
local MEMBERS = 11
local queueKeys = {unpack(KEYS, 8)}

local function lookAtNext(finished)
  local id, fingerprint = fetchedJob(finished)
  if not id then
    return ''
  end
  local stood = readStanding(ARGV[3] .. string.gsub(id, '-', ''))
  if stood[1] ~= 'queued' or stood[9] ~= fingerprint then
    return ''
  end
  return stood[8] .. ',' .. tellStanding(stood, nowText)
end

local replies = eachOf((#ARGV - 5) / MEMBERS, function(at)
  local from = 6 + MEMBERS * (at - 1)
  local jobId, token, fetchNext, id = unpack(ARGV, from, from + 3)
  local booked = id == '' and '' or settle(ARGV[3] .. id, unpack(ARGV, from + 3, from + 10))
  local finished = replyOf(pcall(finishJob, queueKeys, ARGV[4], jobId, token, fetchNext, ARGV[5]))
  -- It has fetched a job by now: a look that fails is no reason to keep that from the worker.
  local isOk, look = pcall(lookAtNext, finished)
  return {booked, isOk and look or '', finished}
end)
leaveQueued()
return replies
