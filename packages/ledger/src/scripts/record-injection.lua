-- Books what a provider answered to an injection, once for each ad_response_id.
-- ARGV: 1 id, 2 publisher, 3 state (awaiting, unacknowledgeable, abandoned), 4 outcome,
--       5 deadline in ms from now (awaiting), 6 retention in ms (the other states)
-- Clock: Redis'. TTL: the record of a state that ends here lives for the retention.
-- Returns 1 if booked, 0 if the id was known: a repeated write, or its acknowledgment came first.
-- @include books
local id, publisher, state = ARGV[1], ARGV[2], ARGV[3]
if redis.call('EXISTS', entryKey) == 1 then
  return 0
end
local now = clockMs()
redis.call('HSET', entryKey, 's', state, 'p', publisher, 'r', now)
count('recorded', publisher, ARGV[4])
if state == 'awaiting' then
  local deadline = now + ARGV[5]
  redis.call('HSET', entryKey, 'd', deadline)
  redis.call('ZADD', awaitingKey, deadline, id)
  redis.call('HINCRBY', gaugesKey, publisher .. '|awaiting', 1)
else
  redis.call('PEXPIRE', entryKey, ARGV[6])
end
return 1
