-- Records the providers' answers to injections, once for each ad response.
-- KEYS: 1 to 7 as in redis/ledger.lua (1 is the first entry), from 8 on the other entries
-- ARGV: 1 retention in ms (all states but awaiting), then 5 for each:
--       1 id, 2 publisher, 3 state (awaiting, unacknowledgeable, abandoned), 4 outcome,
--       5 deadline in ms from now (awaiting)
-- Clock: Redis'. TTL: an entry in an end state lives for the retention.
-- Returns for each 1 if booked, 0 if the id was known: the write was repeated, or the acknowledgment came first.
-- @include redis/ledger
-- @include redis/batch
local MEMBERS = 5
local retention = ARGV[1]
local now = clockMs()

local function record(at)
  local before = 1 + MEMBERS * (at - 1)
  local id, publisher, state, outcome, deadlineMs = unpack(ARGV, before + 1, before + MEMBERS)
  local key = entryKeyOf(at)
  if redis.call('EXISTS', key) == 1 then
    return 0
  end
  if state == 'awaiting' then
    local deadline = now + deadlineMs
    redis.call('HSET', key, 's', state, 'p', publisher, 'r', now, 'd', deadline)
    redis.call('ZADD', awaitingKey, deadline, id)
    moveCount(publisher, nil, state)
  else
    redis.call('HSET', key, 's', state, 'p', publisher, 'r', now)
    redis.call('PEXPIRE', key, retention)
  end
  count('recorded', publisher, outcome)
  return 1
end

return eachOf((#ARGV - 1) / MEMBERS, record)
