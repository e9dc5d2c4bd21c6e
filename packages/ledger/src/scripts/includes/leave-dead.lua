-- Puts one dead letter back on the queue; the queue's part is noted in the same step and looked at when due.
local function replayDead(key, id, publisher, reason, now, dueAt)
  removeDead(id, publisher, reason)
  redis.call('HSET', key, 'q', now, 'f', 0)
  redis.call('HDEL', key, 'x', 'y', 'e')
  redis.call('ZADD', queuedKey, now, id)
  redis.call('ZADD', payloadKey, dueAt, 'requeue:' .. id)
  move(key, publisher, 'dead', 'queued')
  count('replayed', publisher)
end
