-- Puts one dead letter back on the queue. The same step adds an outbox task for the queue's part, due at `dueAt`.
-- The task ends with the time in µs. The time makes the task unique: a later replay of the same letter adds another
-- task.
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
