-- Books what came of attempts (invariant 3: the ledger first, then the queue).
-- KEYS: the entries of all but the first from 8 on
-- ARGV: 1 retention in ms (deliver, refuse), 2 how many attempts are kept, then 13 for each:
--       1 id, 2 event (deliver, refuse, die, retry), 3 label (verdict of deliver, reason of die),
--       4 attempt code, 5 provider's ack id or '', 6 duration of the attempt in ms,
--       7 wait before the next attempt in ms (retry), 8 channel of a waiting gateway or '', 9 message for it,
--       10 how many attempts were booked when this one began,
--       11 bytes of the caller's body and 12 the provider's public error or '' (die),
--       13 1 if a failure counts (retry), 0 for a probe's: it was made for the provider's sake
-- Clock: Redis'. TTL: an entry that ends here lives for the retention.
-- A retry or die is booked only if no other attempt was meanwhile: a write that is sent again because its
-- reply got lost counts once. A delivery or refusal is the provider's last word and is always booked.
-- When it ended is when its last attempt was logged: a field for it would make the record of each delivery larger.
-- Returns for each 1 if booked, 0 if it was so before, -1 if the state doesn't allow it.
-- @include books
-- @include batch
-- @include dead-letters
-- @include due
local MEMBERS = 13
local ENDS = {deliver = 'delivered', refuse = 'refused', die = 'dead', retry = 'queued'}
local retention, attemptsKept = ARGV[1], tonumber(ARGV[2])
local now = clockMs()
local nowText = string.format('%.0f', now)

-- Those that ended leave the index of queued ones in one command.
local ended = {}

-- An attempt is one line of time,code,duration,event; the latest ones are kept.
local function logWith(log, attempts, line)
  if not log then
    return line
  elseif attempts < attemptsKept then
    return log .. line
  end
  local _, lines = string.gsub(log, '\n', '')
  return (lines < attemptsKept and log or string.gsub(log, '^[^\n]*\n', '', 1)) .. line
end

local function settleOne(at)
  local before = 2 + MEMBERS * (at - 1)
  local id, event, label, code, ackId, durationMs, waitMs, channel, message, attemptsBefore, size, providerError, failures =
    unpack(ARGV, before + 1, before + MEMBERS)
  local key, to, isLastWord = entryKeyOf(at), ENDS[event], event == 'deliver' or event == 'refuse'
  local state, publisher, log, attempts, reason, wait =
    unpack(redis.call('HMGET', key, 's', 'p', 'l', 'n', 'x', 'w'))
  if state ~= 'queued' and state == to then
    return 0
  elseif state ~= 'queued' and not (state == 'dead' and isLastWord) then
    return -1
  elseif not isLastWord and (attempts or '0') ~= attemptsBefore then
    return 0
  end

  attempts = tonumber(attempts) or 0
  log = logWith(log, attempts, nowText .. ',' .. code .. ',' .. durationMs .. ',' .. event .. '\n')
  if wait then
    redis.call('ZREM', dueKey, id)
  end
  -- An entry's fields go in one write: each is a record of its own in Redis' file.
  if event == 'retry' then
    local dueAt = now + waitMs
    redis.call('HSET', key, 'l', log, 'n', attempts + 1, 'w', dueAt)
    if failures ~= '0' then
      redis.call('HINCRBY', key, 'f', failures)
    end
    -- Without a wait of its own it waits for its provider, and that isn't this index' business.
    if tonumber(waitMs) > 0 then
      redis.call('ZADD', dueKey, dueAt, id)
    end
  elseif event == 'die' then
    redis.call('HSET', key, 'l', log, 'n', attempts + 1, 's', to, 'x', label, 'z', size, 'y', providerError)
    addDead(id, publisher, label, now)
  else
    redis.call('HSET', key, 'l', log, 'n', attempts + 1, 's', to, 'o', label, 'i', ackId)
    redis.call('PEXPIRE', key, retention)
    if state == 'dead' then
      removeDead(id, publisher, reason)
      redis.call('HDEL', key, 'x', 'y', 'e')
      redis.call('ZADD', payloadKey, now, 'remove:' .. id)
    end
  end
  if event ~= 'retry' then
    if wait then
      redis.call('HDEL', key, 'w')
    end
    moveCount(publisher, state, to)
    count(to, publisher, label)
    ended[#ended + 1] = id
  end
  if channel ~= '' then
    redis.call('PUBLISH', channel, message)
  end
  return 1
end

local replies = eachOf((#ARGV - 2) / MEMBERS, settleOne)
if #ended > 0 then
  redis.call('ZREM', queuedKey, unpack(ended))
end
return replies
