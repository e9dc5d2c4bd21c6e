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
-- Returns for each 1 if booked, 0 if it was so before, -1 if the state doesn't allow it.
-- @include books
-- @include batch
-- @include dead-letters
-- @include due
local MEMBERS = {'id', 'event', 'label', 'code', 'ackId', 'duration', 'waitMs', 'channel', 'message', 'attemptsBefore',
  'size', 'providerError', 'failures'}
local ENDS = {deliver = 'delivered', refuse = 'refused', die = 'dead', retry = 'queued'}
local retention, attemptsKept = ARGV[1], tonumber(ARGV[2])
local now = clockMs()
local nowText = string.format('%.0f', now)

-- The attempt: one line of time,code,duration,event, the latest ones kept.
local function logWith(log, attempts, line)
  log = (log or '') .. line
  if attempts >= attemptsKept then
    local _, lines = string.gsub(log, '\n', '')
    if lines > attemptsKept then
      log = string.gsub(log, '^[^\n]*\n', '', 1)
    end
  end
  return log
end

-- Fields and values of the entry after the attempt: all in one write, as each is a record of its own in Redis' file.
local function fieldsAfter(attempt, log, attempts)
  local line = nowText .. ',' .. attempt.code .. ',' .. attempt.duration .. ',' .. attempt.event .. '\n'
  local fields = {'l', logWith(log, attempts, line), 'n', attempts + 1}
  local function set(name, value)
    fields[#fields + 1] = name
    fields[#fields + 1] = value
  end
  if attempt.event == 'retry' then
    set('w', now + attempt.waitMs)
    return fields
  end
  set('s', ENDS[attempt.event])
  set('e', now)
  if attempt.event == 'die' then
    set('x', attempt.label)
    set('z', attempt.size)
    set('y', attempt.providerError)
  else
    set('o', attempt.label)
    if attempt.ackId ~= '' then
      set('i', attempt.ackId)
    end
  end
  return fields
end

local function bookRetry(key, attempt)
  if attempt.failures ~= '0' then
    redis.call('HINCRBY', key, 'f', attempt.failures)
  end
  -- Without a wait of its own it waits for its provider, and that isn't this index' business.
  if tonumber(attempt.waitMs) > 0 then
    redis.call('ZADD', dueKey, now + attempt.waitMs, attempt.id)
  end
end

local function bookEnd(key, attempt, from, publisher, reason)
  local id, label, to = attempt.id, attempt.label, ENDS[attempt.event]
  if attempt.event == 'die' then
    addDead(id, publisher, label, now)
  else
    redis.call('PEXPIRE', key, retention)
    if from == 'dead' then
      removeDead(id, publisher, reason)
      redis.call('HDEL', key, 'x', 'y')
      redis.call('ZADD', payloadKey, now, 'remove:' .. id)
    end
  end
  moveLater(publisher, from, to)
  unqueueLater(id)
  countLater(to, publisher, label)
end

local function book(key, attempt)
  local event = attempt.event
  local to, isLastWord = ENDS[event], event == 'deliver' or event == 'refuse'
  local state, publisher, log, attempts, reason, wait =
    unpack(redis.call('HMGET', key, 's', 'p', 'l', 'n', 'x', 'w'))
  if state ~= 'queued' and state == to then
    return 0
  elseif state ~= 'queued' and not (state == 'dead' and isLastWord) then
    return -1
  elseif not isLastWord and (attempts or '0') ~= attempt.attemptsBefore then
    return 0
  end
  redis.call('HSET', key, unpack(fieldsAfter(attempt, log, tonumber(attempts) or 0)))
  if wait then
    redis.call('ZREM', dueKey, attempt.id)
    if event ~= 'retry' then
      redis.call('HDEL', key, 'w')
    end
  end
  if event == 'retry' then
    bookRetry(key, attempt)
  else
    bookEnd(key, attempt, state, publisher, reason)
  end
  if attempt.channel ~= '' then
    redis.call('PUBLISH', attempt.channel, attempt.message)
  end
  return 1
end

local function attemptAt(at)
  local attempt, before = {}, 2 + #MEMBERS * (at - 1)
  for place, name in ipairs(MEMBERS) do
    attempt[name] = ARGV[before + place]
  end
  return attempt
end

local replies = eachOf((#ARGV - 2) / #MEMBERS, function(at)
  return book(entryKeyOf(at), attemptAt(at))
end)
finishBatch()
return replies
