-- Books that an acknowledgment is in the queue. Nothing is booked unless the queue really holds this text
-- (invariant 1): an earlier request with another text may have queued its job and died before it could book it.
-- `asked` is {id, publisher, textHash, field}: the field of the queued payload that holds its fingerprint.
-- TTL: lifted from a missed record that is acknowledged after all.
-- Answers its code, see reply-codes.ts, and how it stood before: state, queued, accepted, next attempt, attempts,
-- failed attempts, reason of death.
local function acceptOne(key, queuedPayloadKey, asked, now)
  local id, publisher, textHash = asked.id, asked.publisher, asked.textHash
  local stood = redis.call('HMGET', key, 's', 'q', 'a', 'w', 'n', 'f', 'x', 'p', 't')
  local state, owner, knownHash = stood[1], stood[8], stood[9]

  local function book(from, code)
    local queued = redis.call('HGET', queuedPayloadKey, asked.field)
    if not queued then
      return 8
    elseif queued ~= textHash then
      return 5
    end
    -- What is not there counts as nothing: no attempts, queued when accepted.
    redis.call('HSET', key, 'p', publisher, 't', textHash, 'a', now)
    redis.call('ZREM', awaitingKey, id)
    redis.call('ZADD', queuedKey, now, id)
    move(key, publisher, from, 'queued')
    count('accepted', publisher)
    return code
  end

  local code
  if not state then
    code = book(nil, 3)
  elseif owner ~= publisher then
    code = 7
  elseif state == 'awaiting' then
    code = book('awaiting', 1)
  elseif state == 'missed' then
    code = book('missed', 2)
  elseif state == 'unacknowledgeable' or state == 'abandoned' then
    code = 6
  elseif knownHash ~= textHash then
    code = 5
  else
    code = 4
  end

  if code == 2 then
    redis.call('HSET', key, 'L', 1)
    redis.call('HDEL', key, 'e')
    redis.call('PERSIST', key)
    count('late', publisher)
  elseif code == 3 then
    count('unknown', publisher)
  end
  return code, stood
end
