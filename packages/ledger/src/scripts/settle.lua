-- Books what came of an attempt (invariant 3: the ledger first, then the queue).
-- ARGV: 1 id, 2 event (deliver, refuse, die, retry), 3 label (verdict of deliver, reason of die),
--       4 attempt code, 5 provider's ack id or '', 6 duration of the attempt in ms,
--       7 wait before the next attempt in ms (retry), 8 retention in ms (deliver, refuse),
--       9 channel of a waiting gateway or '', 10 message for it, 11 how many attempts are kept,
--       12 how many attempts were booked when this one began,
--       13 bytes of the caller's body and 14 the provider's public error or '' (die),
--       15 1 if a failure counts (retry), 0 for a probe's: it was made for the provider's sake
-- Clock: Redis'. TTL: an entry that ends here lives for the retention.
-- A retry or die is booked only if no other attempt was meanwhile: a write that is sent again because its
-- reply got lost counts once. A delivery or refusal is the provider's last word and is always booked.
-- Returns 1 if booked, 0 if it was so before, -1 if the state doesn't allow it.
-- @include books
-- @include dead-letters
-- @include due
local id, event, label, code = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local state, publisher, log, attempts, reason, wait =
  unpack(redis.call('HMGET', entryKey, 's', 'p', 'l', 'n', 'x', 'w'))
local now = clockMs()

local ends = {deliver = 'delivered', refuse = 'refused', die = 'dead', retry = 'queued'}
local to = ends[event]
if state ~= 'queued' and state == to then
  return 0
end
if state ~= 'queued' and not (state == 'dead' and (event == 'deliver' or event == 'refuse')) then
  return -1
end
if (event == 'retry' or event == 'die') and attempts ~= ARGV[12] then
  return 0
end

-- The attempt: one line of time,code,duration,event, the latest ones kept.
log = (log or '') .. string.format('%.0f', now) .. ',' .. code .. ',' .. ARGV[6] .. ',' .. event .. '\n'
local _, lines = string.gsub(log, '\n', '')
if lines > tonumber(ARGV[11]) then
  log = string.gsub(log, '^[^\n]*\n', '', 1)
end
-- All of the entry's fields in one write: each write is a record of its own in Redis' file.
local booked = {'l', log, 'c', code, 'n', (tonumber(attempts) or 0) + 1}
local function book(...)
  for _, value in ipairs({...}) do
    table.insert(booked, value)
  end
  redis.call('HSET', entryKey, unpack(booked))
end
if wait then
  redis.call('ZREM', dueKey, id)
end

if event == 'retry' then
  redis.call('HINCRBY', entryKey, 'f', ARGV[15])
  book('w', now + ARGV[7])
  -- Without a wait of its own it waits for its provider, and that isn't this index' business.
  if tonumber(ARGV[7]) > 0 then
    redis.call('ZADD', dueKey, now + ARGV[7], id)
  end
else
  move(entryKey, publisher, state, to)
  redis.call('ZREM', queuedKey, id)
  if wait then
    redis.call('HDEL', entryKey, 'w')
  end
  count(to, publisher, label)
  if event == 'die' then
    book('e', now, 'x', label, 'z', ARGV[13], 'y', ARGV[14])
    addDead(id, publisher, label, now)
  else
    book('e', now, 'o', label, 'i', ARGV[5])
    redis.call('PEXPIRE', entryKey, ARGV[8])
    if state == 'dead' then
      removeDead(id, publisher, reason)
      redis.call('HDEL', entryKey, 'x', 'y')
      redis.call('ZADD', payloadKey, now, 'remove:' .. id)
    end
  end
end
if ARGV[9] ~= '' then
  redis.call('PUBLISH', ARGV[9], ARGV[10])
end
return 1
