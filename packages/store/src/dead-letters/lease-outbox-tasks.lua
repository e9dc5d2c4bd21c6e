-- Leases outbox tasks that are due, oldest first. A task that isn't done within the lease comes up again. So a task that
-- must wait delays no other, and two workers never have the same one at the same time.
-- ARGV: 1 most tasks, 2 lease in ms
-- Clock: Redis'. TTL: none.
-- Returns the tasks: `requeue:ID:TIME` or `remove:ID`.
-- @include redis/when-full
-- @include redis/ledger
local now = clockMs()
local tasks = redis.call('ZRANGEBYSCORE', outboxKey, '-inf', now, 'LIMIT', 0, ARGV[1])
for _, task in ipairs(tasks) do
  redis.call('ZADD', outboxKey, now + ARGV[2], task)
end
return tasks
