-- How an acknowledgment stands, for a worker that is to make an attempt at it.

-- State, queued, accepted, next attempt, attempts, failed attempts, reason of death, publisher, fingerprint of its text.
local function readStanding(key)
  return redis.call('HMGET', key, 's', 'q', 'a', 'w', 'n', 'f', 'x', 'p', 't')
end

-- As a text, `4,now,state,next attempt,queued,attempts,failed attempts,reason of death`, times in ms and '' for what is not
-- there: a list of lists would take longer to write than all the rest. 4 is the code of what is booked already.
local function tellStanding(stood, nowText)
  return '4,' .. nowText .. ',' .. stood[1] .. ',' .. (stood[4] or '') .. ',' .. (stood[2] or stood[3] or '') .. ','
    .. (stood[5] or '0') .. ',' .. (stood[6] or '0') .. ',' .. (stood[7] or '')
end
