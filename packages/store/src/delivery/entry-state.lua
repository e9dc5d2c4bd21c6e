-- What a worker needs to know of an entry before it makes an attempt.

-- State, queued, accepted, next attempt, attempts, failed attempts, reason of death, publisher, fingerprint of its text.
local function readEntry(key)
  return redis.call('HMGET', key, 's', 'q', 'a', 'w', 'n', 'f', 'x', 'p', 't')
end

-- As a text: `4,now,state,next attempt,queued,attempts,failed attempts,reason of death`, times in ms, '' for what is
-- missing. A nested list would take longer to write than all the rest. 4 is the code of a repeat.
local function writeEntry(entry, nowText)
  return '4,' .. nowText .. ',' .. entry[1] .. ',' .. (entry[4] or '') .. ',' .. (entry[2] or entry[3] or '') .. ','
    .. (entry[5] or '0') .. ',' .. (entry[6] or '0') .. ',' .. (entry[7] or '')
end
