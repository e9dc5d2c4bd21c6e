-- The counts that belong to no publisher.
-- Clock: Redis'. Writes nothing.
-- Returns {now in ms, oldest queued and dead with their times, overdue, outbox tasks}.
-- @include redis/ledger
local now = clockMs()
return {
  now,
  redis.call('ZRANGE', queuedKey, 0, 0, 'WITHSCORES'),
  redis.call('ZRANGE', deadKey, 0, 0, 'WITHSCORES'),
  redis.call('ZCOUNT', awaitingKey, '-inf', now),
  redis.call('ZCARD', outboxKey),
}
