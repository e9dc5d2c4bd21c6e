-- Moves a bounded batch of overdue entries. An awaiting one past its deadline becomes missed. A dead letter past its
-- retention becomes expired. Each entry moves once, however many workers sweep.
-- ARGV: 1 event (miss, expire), 2 most ids, 3 retention of entries in ms, 4 prefix of entry keys,
--       5 retention of dead letters in ms (expire)
-- Clock: Redis'. TTL: an entry that ends here lives for the retention.
-- Returns how many ids were checked. If it is as many as asked for, there may be more.
-- @include redis/when-full
-- @include redis/ledger
-- @include redis/stored-bytes
-- @include dead-letters/dead-index
local event = ARGV[1]
local now = clockMs()
local from, to, index, due = 'awaiting', 'missed', awaitingKey, now
if event == 'expire' then
  from, to, index, due = 'dead', 'expired', deadKey, now - ARGV[5]
end
local ids = redis.call('ZRANGEBYSCORE', index, '-inf', due, 'LIMIT', 0, ARGV[2])
for _, id in ipairs(ids) do
  local key = ARGV[4] .. id
  local state, publisher, reason, code, stored = unpack(redis.call('HMGET', key, 's', 'p', 'x', 'y', 'b'))
  redis.call('ZREM', index, id)
  if state == from then
    move(key, publisher, from, to)
    count(to, publisher)
    redis.call('HSET', key, 'e', now)
    redis.call('PEXPIRE', key, ARGV[3])
    if event == 'expire' then
      releaseBytes(stored, publisher, from)
      removeDead(id, publisher, reason, code)
      redis.call('ZADD', outboxKey, now, 'remove:' .. id)
    end
  end
end
return #ids
