-- What an acknowledgment meets in the ledger, as a code of reply-codes.ts: 1 to 3 if it is to be booked.
local function judge(state, owner, knownHash, publisher, textHash)
  if not state then
    return 3
  elseif owner ~= publisher then
    return 7
  elseif state == 'awaiting' then
    return 1
  elseif state == 'missed' then
    return 2
  elseif state == 'unacknowledgeable' or state == 'abandoned' then
    return 6
  end
  return knownHash == textHash and 4 or 5
end

-- Books one that was judged 1 to 3 and that the queue holds. TTL: lifted from a missed record.
local function bookAccepted(key, id, publisher, textHash, code, now)
  -- What takes no memory comes first, as in attempt-ends.lua.
  if code == 2 then
    redis.call('HDEL', key, 'e')
    redis.call('PERSIST', key)
    redis.call('HSET', key, 'L', '1')
  elseif code == 1 then
    redis.call('ZREM', awaitingKey, id)
  end
  -- It was queued when it was accepted, and has failed as often as nothing says: no fields for that.
  redis.call('HSET', key, 's', 'queued', 'p', publisher, 't', textHash, 'a', now, 'n', '0')
  redis.call('ZADD', queuedKey, now, id)
  moveCount(publisher, code == 1 and 'awaiting' or code == 2 and 'missed', 'queued')
  count('accepted', publisher)
  if code > 1 then
    count(code == 2 and 'late' or 'unknown', publisher)
  end
end
