-- All counts at one moment, so that they can be compared (docs/state-machine.md).
-- Clock: Redis'. Writes nothing.
-- Returns {now in ms, gauges, totals, oldest queued and dead with their times, overdue, outbox tasks,
--   current dead letters as [publisher|reason, how many, publisher|reason, how many …]}.
-- @include redis/ledger
-- @include dead-letters/dead-index
local now = clockMs()
local deadNow = {}
for _, kind in ipairs(deadKinds('', '', '')) do
  table.insert(deadNow, kind)
  table.insert(deadNow, redis.call('ZCARD', deadKindKey(kind, '')))
end
return {
  now,
  redis.call('HGETALL', gaugesKey),
  redis.call('HGETALL', totalsKey),
  redis.call('ZRANGE', queuedKey, 0, 0, 'WITHSCORES'),
  redis.call('ZRANGE', deadKey, 0, 0, 'WITHSCORES'),
  redis.call('ZCOUNT', awaitingKey, '-inf', now),
  redis.call('ZCARD', outboxKey),
  deadNow,
}
