-- All counts at one moment, so that the books can be compared (docs/state-machine.md).
-- Clock: Redis'. Writes nothing.
-- Returns {now in ms, gauges, totals, oldest queued and dead with their times, overdue, payload work,
--   dead letters that stand as [publisher|reason, how many, publisher|reason, how many …]}.
-- @include books
-- @include dead-letters
local now = clockMs()
local standing = {}
for _, kind in ipairs(deadKinds('', '')) do
  table.insert(standing, kind)
  table.insert(standing, redis.call('ZCARD', deadKindKey(kind)))
end
return {
  now,
  redis.call('HGETALL', gaugesKey),
  redis.call('HGETALL', totalsKey),
  redis.call('ZRANGE', queuedKey, 0, 0, 'WITHSCORES'),
  redis.call('ZRANGE', deadKey, 0, 0, 'WITHSCORES'),
  redis.call('ZCOUNT', awaitingKey, '-inf', now),
  redis.call('ZCARD', payloadKey),
  standing,
}
