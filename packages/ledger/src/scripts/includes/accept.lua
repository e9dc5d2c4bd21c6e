-- Books that an acknowledgment is in the queue. Nothing is booked unless the queue really holds this text
-- (invariant 1): an earlier request with another text may have queued its job and died before it could book it.
-- TTL: lifted from a missed record that is acknowledged after all.
local function bookQueued(key, id, publisher, textHash, payload, field, from, code, now)
  local queued = redis.call('HGET', payload, field)
  if not queued then
    return 8
  elseif queued ~= textHash then
    return 5
  end
  -- It was queued when it was accepted, and has failed as often as nothing says: no fields for that.
  redis.call('HSET', key, 'p', publisher, 't', textHash, 'a', now, 'n', 0)
  redis.call('ZREM', awaitingKey, id)
  redis.call('ZADD', queuedKey, now, id)
  move(key, publisher, from, 'queued')
  count('accepted', publisher)
  if code == 2 then
    redis.call('HSET', key, 'L', 1)
    redis.call('HDEL', key, 'e')
    redis.call('PERSIST', key)
    count('late', publisher)
  elseif code == 3 then
    count('unknown', publisher)
  end
  return code
end

-- `payload` is the key of the queued payload, and `field` the one in it that holds its fingerprint. Answers its code,
-- see reply-codes.ts, and how it stood before: state, queued, accepted, next attempt, attempts, failed attempts, reason
-- of death.
local function acceptOne(key, id, publisher, textHash, payload, field, now)
  local stood = redis.call('HMGET', key, 's', 'q', 'a', 'w', 'n', 'f', 'x', 'p', 't')
  local state, owner, knownHash = stood[1], stood[8], stood[9]
  local code
  if not state then
    code = bookQueued(key, id, publisher, textHash, payload, field, nil, 3, now)
  elseif owner ~= publisher then
    code = 7
  elseif state == 'awaiting' then
    code = bookQueued(key, id, publisher, textHash, payload, field, state, 1, now)
  elseif state == 'missed' then
    code = bookQueued(key, id, publisher, textHash, payload, field, state, 2, now)
  elseif state == 'unacknowledgeable' or state == 'abandoned' then
    code = 6
  elseif knownHash ~= textHash then
    code = 5
  else
    code = 4
  end
  return code, stood
end
