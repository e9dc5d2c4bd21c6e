-- Puts one dead letter back on the queue. The queue's part becomes an outbox task in the same step, due at `dueAt`.
-- The task ends with the time in µs. So a later replay of the letter has its own task, and removing this one
-- doesn't remove that one.
local function replayDead(key, id, publisher, reason, now, dueAt)
  removeDead(id, publisher, reason)
  redis.call('HSET', key, 'q', now, 'f', 0)
  redis.call('HDEL', key, 'x', 'y', 'e')
  redis.call('ZADD', queuedKey, now, id)
  local task = 'requeue:' .. id .. ':' .. string.format('%.0f', clockUs())
  redis.call('ZADD', outboxKey, dueAt, task)
  move(key, publisher, 'dead', 'queued')
  count('replayed', publisher)
  return task
end
