-- What an attempt leaves in its entry. The fields are written by one command, because each command makes a
-- record in Redis' file.

-- An attempt is one line: time,code,duration,outcome. Only the latest ones are kept.
local function logWith(log, attempts, kept, line)
  if not log then
    return line
  elseif attempts < kept then
    return log .. line
  end
  local _, lines = string.gsub(log, '\n', '')
  return (lines < kept and log or string.gsub(log, '^[^\n]*\n', '', 1)) .. line
end

-- `codes`: the provider's own code of the attempt before, false if there is none, and of this one, '' if there is none.
local function writeRetry(key, id, log, attempts, now, waitMs, failures, codes)
  local dueAt = now + waitMs
  if codes.now ~= '' then
    redis.call('HSET', key, 'l', log, 'n', attempts, 'w', dueAt, 'y', codes.now)
  else
    redis.call('HSET', key, 'l', log, 'n', attempts, 'w', dueAt)
    if codes.before then
      redis.call('HDEL', key, 'y')
    end
  end
  if failures ~= '0' then
    redis.call('HINCRBY', key, 'f', failures)
  end
  -- Without a wait, the acknowledgment is parked until its circuit breaker lets it go.
  if tonumber(waitMs) > 0 then
    redis.call('ZADD', dueKey, dueAt, id)
  end
end

-- The time of the end is the time of the last attempt in the log: a field for it would make each entry larger.
local function writeFinal(key, log, attempts, to, label, ackId, retentionMs)
  redis.call('PEXPIRE', key, retentionMs)
  redis.call('HSET', key, 'l', log, 'n', attempts, 's', to, 'o', label, 'i', ackId)
end

-- Removes a dead letter whose acknowledgment turns out to have arrived. The queue still keeps its text.
local function leaveDeath(key, id, publisher, reason, providerCode, now)
  removeDead(id, publisher, reason, providerCode)
  redis.call('HDEL', key, 'x', 'y', 'e')
  redis.call('ZADD', outboxKey, now, 'remove:' .. id)
end

-- Entries that ended leave the index of queued ones by one command.
local ended = {}
local function leaveQueued()
  if #ended > 0 then
    redis.call('ZREM', queuedKey, unpack(ended))
  end
end
