-- What attempts leave in an entry. Its fields go in one write: each is a record of its own in Redis' file.
-- @include due

-- An attempt is one line of time,code,duration,event; the latest ones are kept.
local function logWith(log, attempts, kept, line)
  if not log then
    return line
  elseif attempts < kept then
    return log .. line
  end
  local _, lines = string.gsub(log, '\n', '')
  return (lines < kept and log or string.gsub(log, '^[^\n]*\n', '', 1)) .. line
end

local function writeRetry(key, id, log, attempts, now, waitMs, failures)
  local dueAt = now + waitMs
  redis.call('HSET', key, 'l', log, 'n', attempts, 'w', dueAt)
  if failures ~= '0' then
    redis.call('HINCRBY', key, 'f', failures)
  end
  -- Without a wait of its own it waits for its provider, and that isn't this index' business.
  if tonumber(waitMs) > 0 then
    redis.call('ZADD', dueKey, dueAt, id)
  end
end

-- When it ended is when its last attempt was logged: a field for it would make the record of each delivery larger.
-- A full Redis lets a script write anything once it has written what takes no memory, so that comes first: what is
-- delivered can be booked, and its text leaves.
local function writeLastWord(key, log, attempts, to, label, ackId, retentionMs)
  redis.call('PEXPIRE', key, retentionMs)
  redis.call('HSET', key, 'l', log, 'n', attempts, 's', to, 'o', label, 'i', ackId)
end

-- A dead letter that turns out to have arrived: the queue keeps its text still.
local function leaveDeath(key, id, publisher, reason, now)
  removeDead(id, publisher, reason)
  redis.call('HDEL', key, 'x', 'y', 'e')
  redis.call('ZADD', payloadKey, now, 'remove:' .. id)
end

-- Those that ended leave the index of queued ones in one command.
local ended = {}
local function leaveQueued()
  if #ended > 0 then
    redis.call('ZREM', queuedKey, unpack(ended))
  end
end
