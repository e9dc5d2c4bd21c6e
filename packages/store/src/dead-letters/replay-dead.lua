-- Puts one dead letter back on the queue. The same step adds an outbox task for the queue's part, due at `dueAt`.
-- The task ends with the time in µs. The time makes the task unique: a later replay of the same letter adds another
-- task. Needs redis/stored-bytes.lua. `record` is the key of the bulk replay that counts what becomes of the letter, or nil.
local function replayDead(key, id, publisher, reason, code, now, dueAt, record)
  removeDead(id, publisher, reason, code)
  moveBytes(key, redis.call('HGET', key, 'b'), publisher, 'dead', publisher, 'queued')
  redis.call('HSET', key, 'q', now, 'f', 0)
  redis.call('HDEL', key, 'x', 'y', 'e', 'R')
  if record then
    redis.call('HSET', key, 'R', record)
  end
  redis.call('ZADD', queuedKey, now, id)
  local task = 'requeue:' .. id .. ':' .. string.format('%.0f', clockUs())
  redis.call('ZADD', outboxKey, dueAt, task)
  move(key, publisher, 'dead', 'queued')
  count('replayed', publisher)
  return task
end
