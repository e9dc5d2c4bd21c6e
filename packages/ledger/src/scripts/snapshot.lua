-- All counts at one moment, so that the books can be compared (docs/state-machine.md).
-- Clock: Redis'. Writes nothing.
-- Returns {now in ms, gauges, totals, oldest queued and dead with their times, overdue, payload work}.
-- @include books
local now = clockMs()
return {
  now,
  redis.call('HGETALL', gaugesKey),
  redis.call('HGETALL', totalsKey),
  redis.call('ZRANGE', queuedKey, 0, 0, 'WITHSCORES'),
  redis.call('ZRANGE', deadKey, 0, 0, 'WITHSCORES'),
  redis.call('ZCOUNT', awaitingKey, '-inf', now),
  redis.call('ZCARD', payloadKey),
}
