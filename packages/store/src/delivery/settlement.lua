-- Books the outcome of an attempt (invariant 3: the ledger first, then the queue). A script that includes this calls
-- `leaveQueued` at its end. Needs redis/batch.lua, redis/stored-bytes.lua and
-- dead-letters/dead-index.lua.
-- ARGV: 1 retention of delivered entries in ms, 2 of refused ones, 3 how many attempts are kept
-- TTL: an entry that ends here lives for the retention.
-- The reply to a write may be lost and the write sent again. So a retry or a death is booked only if no other attempt
-- was booked meanwhile. A delivery or a refusal is final and is always booked.
-- The rules are those of `decideTransition` in core; test/ledger.test.ts compares the two in every state.
-- @include delivery/attempt-log
-- @include dead-letters/replay-outcome
-- An erasure doesn't wait for an attempt that is under way. So a discarded entry may learn that the provider has it. Any
-- other outcome changes nothing there.
local ENDS = {deliver = 'delivered', refuse = 'refused', die = 'dead', retry = 'queued', ambiguous = 'queued'}
local retentionMs, attemptsKept = {deliver = ARGV[1], refuse = ARGV[2]}, tonumber(ARGV[3])
-- How a text mentions the ad, if a turn wrote it, and the verdict that contradicts this: as `isDisagreement` in core.
local CONTRARY = {none = 'ok', name = 'no_ad_used', link = 'no_ad_used', foreign = 'no_ad_used'}
local now = clockMs()
local nowText = string.format('%.0f', now)

-- Returns 1 if booked, 0 if it was booked before, -1 if the state doesn't allow it. Arguments after `message` are for
-- retries and deaths only; delivery/settle.lua lists them.
local function settle(key, id, event, label, code, ackId, durationMs, channel, message, attemptsBefore, waitMs,
    failures, size, providerError)
  local to, isFinal = ENDS[event], event == 'deliver' or event == 'refuse'
  local state, publisher, log, attempts, reason, wait, providerCode, replay, stored, finding =
    unpack(redis.call('HMGET', key, 's', 'p', 'l', 'n', 'x', 'w', 'y', 'R', 'b', 'M'))
  if state ~= 'queued' and state == to then
    return 0
  elseif state == 'discarded' and not isFinal then
    return 0
  elseif state ~= 'queued' and not ((state == 'dead' or state == 'discarded') and isFinal) then
    return -1
  elseif not isFinal and (attempts or '0') ~= attemptsBefore then
    return 0
  end

  attempts = tonumber(attempts) or 0
  log = logWith(log, attempts, attemptsKept, nowText .. ',' .. code .. ',' .. durationMs .. ',' .. event .. '\n')
  if wait then
    redis.call('ZREM', dueKey, id)
  end
  if to == 'queued' then
    writeRetry(key, id, log, attempts + 1, now, waitMs, failures, {before = providerCode, now = providerError})
  elseif event == 'die' then
    redis.call('HSET', key, 'l', log, 'n', attempts + 1, 's', to, 'x', label, 'z', size, 'y', providerError)
    moveBytes(key, stored, publisher, 'queued', publisher, 'dead')
    addDead(key, id, publisher, label, providerError, now)
  else
    if state ~= 'discarded' then
      releaseBytes(stored, publisher, state)
    end
    writeFinal(key, log, attempts + 1, to, label, ackId, retentionMs[event])
    if state == 'dead' then
      leaveDeath(key, id, publisher, reason, providerCode, now)
    elseif state == 'discarded' then
      redis.call('HDEL', key, 'x', 'y', 'e')
    elseif providerCode then
      redis.call('HDEL', key, 'y')
    end
  end
  if to ~= 'queued' then
    if wait then
      redis.call('HDEL', key, 'w')
    end
    moveCount(publisher, state, to)
    count(to, publisher, label)
    if finding and event == 'deliver' and CONTRARY[string.match(finding, '^%a+')] == label then
      count('disagreements', publisher, label)
    end
    countOutcome(key, replay, to, label)
    ended[#ended + 1] = id
  end
  if channel ~= '' then
    -- Without the right to publish, the gateway asks the ledger.
    redis.pcall('PUBLISH', channel, message)
  end
  return 1
end
