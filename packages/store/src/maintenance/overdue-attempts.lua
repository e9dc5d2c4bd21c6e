-- Returns overdue attempts, oldest first. Each comes up again after the grace unless it was made.
-- ARGV: 1 most ids, 2 grace in ms after the time of the attempt, 3 prefix of entry keys
-- Clock: Redis'. TTL: none.
-- Returns the ids.
-- @include redis/when-full
-- @include redis/ledger
local now = clockMs()
local overdue = {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', dueKey, '-inf', now - ARGV[2], 'LIMIT', 0, ARGV[1])) do
  local state, due = unpack(redis.call('HMGET', ARGV[3] .. id, 's', 'w'))
  if state == 'queued' and due then
    redis.call('ZADD', dueKey, now, id)
    table.insert(overdue, id)
  else
    redis.call('ZREM', dueKey, id)
  end
end
return overdue
