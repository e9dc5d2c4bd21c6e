-- How a queued entry is ended without delivery. Needs redis/ledger.lua and dead-letters/discard-entry.lua.
-- 1. While an attempt holds its job, its outcome isn't known, and nothing changes. So nothing that the provider took in this
--    attempt is booked as discarded.
-- 2. A parked acknowledgment may have been released just now. Then the circuit breaker finds no job for it, and forgets it.

local function isHeld(jobKey)
  return redis.call('EXISTS', jobKey .. ':lock') == 1
end

-- Takes it out of the indexes of queued ones.
local function leaveQueue(key, id, publisher, parkedPrefix)
  redis.call('ZREM', queuedKey, id)
  redis.call('ZREM', dueKey, id)
  redis.call('ZREM', parkedPrefix .. publisher, id)
  redis.call('HDEL', key, 'w')
end

-- The channel of a gateway whose caller waits for the outcome, or nil. The caller's body is text in the job's data, so its quotes
-- are escaped there, and the match is the job's own member.
local function channelIn(data)
  return string.match(data, '"replyTo":"([^"\\]+)"')
end

local function tellCaller(channel, id, publisher)
  local asCallersKnow = string.gsub(id, '^(' .. ('%x'):rep(8) .. ')(%x%x%x%x)(%x%x%x%x)(%x%x%x%x)', '%1-%2-%3-%4-')
  redis.pcall('PUBLISH', channel, cjson.encode({adResponseId = asCallersKnow, publisher = publisher, event = 'discard',
    code = 'discarded', delayMs = 0}))
end

-- Tells the caller that waits for this job, if there is one. Returns how many bytes were read for that.
local function tellCallerOf(jobKey, id, publisher)
  local data = redis.call('HGET', jobKey, 'data') or ''
  local channel = channelIn(data)
  if channel then
    tellCaller(channel, id, publisher)
  end
  return #data
end
