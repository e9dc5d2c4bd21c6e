-- Puts one dead letter back on the queue; the queue's part is noted in the same step and looked at when due.
-- The note bears the time in microseconds: a later replay's note is another one, and who finishes this one leaves
-- that alone.
local function replayDead(key, id, publisher, reason, now, dueAt)
  removeDead(id, publisher, reason)
  redis.call('HSET', key, 'q', now, 'f', 0)
  redis.call('HDEL', key, 'x', 'y', 'e')
  redis.call('ZADD', queuedKey, now, id)
  local note = 'requeue:' .. id .. ':' .. string.format('%.0f', clockUs())
  redis.call('ZADD', payloadKey, dueAt, note)
  move(key, publisher, 'dead', 'queued')
  count('replayed', publisher)
  return note
end
