-- Ends an entry without delivery. The removal of its text from the queue becomes an outbox task in the same step, due at
-- `dueAt`. The caller takes it out of the indexes of its state first.
-- Needs redis/stored-bytes.lua. TTL: a discarded entry lives for the retention.
local function discardEntry(key, id, publisher, from, now, dueAt, retentionMs)
  local task = 'remove:' .. id
  releaseBytes(redis.call('HGET', key, 'b'), publisher, from)
  redis.call('HSET', key, 'e', now)
  redis.call('ZADD', outboxKey, dueAt, task)
  redis.call('PEXPIRE', key, retentionMs)
  move(key, publisher, from, 'discarded')
  count('discarded', publisher)
  return task
end
