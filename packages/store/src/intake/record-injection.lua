-- Records the providers' answers to injections, once for each ad response.
-- KEYS: 1 to 7 as in redis/ledger.lua (1 is the first entry), from 8 on the other entries
-- ARGV: 1 retention of unacknowledgeable entries in ms, 2 of abandoned ones, then 6 for each:
--       1 id, 2 publisher, 3 state (awaiting, unacknowledgeable, abandoned), 4 outcome,
--       5 deadline in ms from now (awaiting), 6 session's hash or '' (awaiting)
-- Clock: Redis'. TTL: an entry in an end state lives for the retention.
-- Returns for each the text `booked,deadline`. Booked is 1, or 0 if the id was known: the write was repeated, or the
-- acknowledgment came first. The deadline is '' if there is none.
-- @include redis/ledger
-- @include redis/batch
-- @include intake/record-awaiting
local MEMBERS = 6
local retentionMs = {unacknowledgeable = ARGV[1], abandoned = ARGV[2]}
local now = clockMs()

local function record(at)
  local before = 2 + MEMBERS * (at - 1)
  local id, publisher, state, outcome, deadlineMs, session = unpack(ARGV, before + 1, before + MEMBERS)
  local key = entryKeyOf(at)
  local known, knownDeadline = unpack(redis.call('HMGET', key, 's', 'd'))
  if known then
    return '0,' .. (knownDeadline or '')
  end
  local deadline = ''
  if state == 'awaiting' then
    deadline = string.format('%.0f', now + deadlineMs)
    recordAwaiting(key, id, {publisher = publisher, session = session, now = now, due = deadline})
    redis.call('HSET', key, 'd', deadline)
  else
    redis.call('HSET', key, 's', state, 'p', publisher, 'r', now)
    redis.call('PEXPIRE', key, retentionMs[state])
    count('recorded', publisher, outcome)
  end
  return '1,' .. deadline
end

return eachOf((#ARGV - 2) / MEMBERS, record)
