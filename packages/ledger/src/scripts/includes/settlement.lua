-- The step that books what came of an attempt (invariant 3: the ledger first, then the queue), for scripts that serve
-- many and call `leaveQueued` in the end. After batch.lua and dead-letters.lua.
-- ARGV: 1 retention in ms (deliver, refuse), 2 how many attempts are kept
-- TTL: an entry that ends here lives for the retention.
-- A retry or die is booked only if no other attempt was meanwhile: a write that is sent again because its
-- reply got lost counts once. A delivery or refusal is the provider's last word and is always booked.
-- @include attempt-ends
local ENDS = {deliver = 'delivered', refuse = 'refused', die = 'dead', retry = 'queued'}
local retentionMs, attemptsKept = ARGV[1], tonumber(ARGV[2])
local now = clockMs()
local nowText = string.format('%.0f', now)

-- Answers 1 if booked, 0 if it was so before, -1 if the state doesn't allow it. What comes after `message` is of a retry
-- or a death alone; settle.lua tells what each means.
local function settle(key, id, event, label, code, ackId, durationMs, channel, message, attemptsBefore, waitMs,
    failures, size, providerError)
  local to, isLastWord = ENDS[event], event == 'deliver' or event == 'refuse'
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
  log = logWith(log, attempts, attemptsKept, nowText .. ',' .. code .. ',' .. durationMs .. ',' .. event .. '\n')
  -- Of a retry or death, also without need: it lets a full Redis take the rest, as in attempt-ends.lua.
  if wait or not isLastWord then
    redis.call('ZREM', dueKey, id)
  end
  if event == 'retry' then
    writeRetry(key, id, log, attempts + 1, now, waitMs, failures)
  elseif event == 'die' then
    redis.call('HSET', key, 'l', log, 'n', attempts + 1, 's', to, 'x', label, 'z', size, 'y', providerError)
    addDead(id, publisher, label, now)
  else
    writeLastWord(key, log, attempts + 1, to, label, ackId, retentionMs)
    if state == 'dead' then
      leaveDeath(key, id, publisher, reason, now)
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
