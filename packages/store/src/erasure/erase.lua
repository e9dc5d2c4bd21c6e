-- Erases what users wrote, of many ad responses, in any state.
-- 1. The text leaves the job in this step, wherever the job is, also while an attempt holds it. The job itself is removed
--    by an outbox task, because BullMQ doesn't remove a job that is held. Its data keep their form, so that each version of
--    the worker can read them.
-- 2. A dead letter or a queued acknowledgment ends as discarded, since it can't be delivered without its text. If an attempt
--    is under way, its caller isn't told: the attempt's outcome may still be delivered (delivery/settlement.lua).
-- 3. With the text go its fingerprint, which could confirm a guess, the provider's code, and the session's hash.
-- 4. What hasn't been accepted yet has no text, unless a turn has it. Its session's hash stays, so that a later erasure finds it.
--    The entry keeps who erased it last, because a repeat by the same operator changes nothing.
-- 5. With an open turn, an ad response ends as if its acknowledgment were queued and discarded in this step. The journal's text
--    and prompt go with the turn, and what its proxy writes or settles later isn't taken.
-- 6. A repeat changes nothing, and counts nothing.
-- KEYS: 8 the audit
-- ARGV: 1 operator, 2 details of the audit as a JSON object, 3 retention in ms, 4 prefix of entry keys, 5 prefix of job
--       keys, 6 prefix of the keys of parked acknowledgments;
--       then for each: its id, the job's id
-- Clock: Redis'. TTL: an entry that ends here lives for the retention.
-- Returns for each the text `code,state afterwards,1 if an attempt is under way,outbox task or ''`. The code is one of
-- ERASE_CODES in redis/scripts.ts.
-- @include redis/when-full
-- @include redis/ledger
-- @include redis/batch
-- @include redis/stored-bytes
-- @include dead-letters/dead-index
-- @include intake/acceptance
-- @include dead-letters/discard-entry
-- @include dead-letters/leave-queue
-- @include dead-letters/replay-outcome
-- @include dead-letters/audit
-- @include erasure/blank-job
local MEMBERS = 2
local by, details, retentionMs, entryPrefix, jobPrefix, parkedPrefix = unpack(ARGV, 1, 6)
local operator = string.match(by, '^%S+')
local now = clockMs()
local WITHOUT_TEXT = {awaiting = true, missed = true, unacknowledgeable = true, abandoned = true}

local function endWithoutText(key, id, entry)
  local state, publisher, reason, code, replay = unpack(entry)
  if state == 'dead' then
    removeDead(id, publisher, reason, code)
  else
    leaveQueue(key, id, publisher, parkedPrefix)
  end
  countOutcome(key, replay, 'discarded')
  count('erased', publisher)
  return discardEntry(key, id, publisher, state, now, now, retentionMs)
end

-- Returns the state of the entry afterwards.
local function endTurn(key, id, publisher, state)
  if redis.call('EXISTS', turnKeyOf(id)) == 0 then
    return state
  end
  bookAccepted(key, id, publisher, '', state == 'missed' and 2 or 1, now, 0, {mark = JOURNALED})
  return 'queued'
end

local function writeAudit(id, publisher, from)
  audit(KEYS[8], now, {by = by, action = 'erase', publisher = publisher, id = id,
    details = string.gsub(details, '}$', ',"from":"' .. from .. '"}')})
end

local function erase(id, jobId)
  local key, jobKey = entryPrefix .. id, jobPrefix .. jobId
  local entry = redis.call('HMGET', key, 's', 'p', 'x', 'y', 'R', 'E', 'W')
  local from, publisher, erased = entry[1], entry[2], entry[6]
  if not from then
    return '0,,0,'
  end
  local state = endTurn(key, id, publisher, from)
  entry[1] = state
  if WITHOUT_TEXT[state] then
    if entry[7] ~= operator then
      redis.call('HSET', key, 'W', operator)
      writeAudit(id, publisher, state)
    end
    return '3,' .. state .. ',0,'
  end
  local isJobHeld = isHeld(jobKey)
  local channel = blankJob(jobKey)
  local task = ''
  local isOpen = state == 'queued' or state == 'dead'
  if isOpen then
    task = endWithoutText(key, id, entry)
  end
  redis.call('HDEL', key, 't', 'y', 'S', 'O', 'W')
  if not erased then
    redis.call('HSET', key, 'E', now)
    writeAudit(id, publisher, from)
  end
  if isOpen and channel and not isJobHeld then
    tellCaller(channel, id, publisher)
  end
  return (erased and 2 or 1) .. ',' .. (isOpen and 'discarded' or state) .. ',' .. (isJobHeld and 1 or 0) .. ',' .. task
end

return eachOf((#ARGV - 6) / MEMBERS, function(at)
  return erase(unpack(ARGV, 5 + MEMBERS * at, 6 + MEMBERS * at))
end)
