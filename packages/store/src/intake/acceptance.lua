-- @include journal/drop-turn
-- Judges an acknowledgment. Returns a code of ACCEPT_CODES in redis/scripts.ts; 1, 2 and 3 mean: book it.
-- The rules are those of `decideIntake` in core; test/accept.test.ts compares the two in every state.
-- `mark`: the entry's field `T` (journal/drop-turn.lua), or nil.
local function judge(state, owner, knownHash, publisher, textHash, mark)
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
  -- Without a fingerprint, because it was erased or has another publisher now, any text counts as the same. So it does if a
  -- turn has, or had, the entry: the proxy and the backend may both acknowledge it, and their texts may differ.
  return (not knownHash or knownHash == textHash or mark == JOURNALED) and 4 or 5
end

-- Books an acknowledgment that was judged 1 to 3 and that the queue holds. `bytes`: what it counts with (redis/stored-bytes.lua).
-- An entry's turn ends with it, whoever acknowledges. `turn`: the entry's field `T`, and the outcome if the turn ends by itself.
-- TTL: removed from a missed entry.
local function bookAccepted(key, id, publisher, textHash, code, now, bytes, turn)
  if turn.mark == JOURNALED then
    dropTurn(id, turn.outcome or 'superseded')
  end
  if code == 2 then
    redis.call('HDEL', key, 'e')
    redis.call('PERSIST', key)
    redis.call('HSET', key, 'L', '1')
  elseif code == 1 then
    redis.call('ZREM', awaitingKey, id)
  end
  -- The time of queueing is the time of acceptance, and no attempt has failed: these two fields are left out.
  local stored = storeBytes(publisher, 'queued', code == 3 and 'u' or 'k', bytes)
  redis.call('HSET', key, 's', 'queued', 'p', publisher, 't', textHash, 'a', now, 'n', '0', 'b', stored)
  redis.call('ZADD', queuedKey, now, id)
  moveCount(publisher, code == 1 and 'awaiting' or code == 2 and 'missed', 'queued')
  count('accepted', publisher)
  if code > 1 then
    count(code == 2 and 'late' or 'unknown', publisher)
  end
end
