-- Takes the caller's body out of a job, and the fingerprint of its text, which is the job's name. The rest of the job's data
-- stays: without a form that they know, workers would keep such a job. Returns the channel of a gateway that waits for the
-- outcome, or nil.
-- Needs dead-letters/leave-queue.lua. Each match is the job's own member, as there.
local function blankJob(jobKey)
  local data = redis.call('HGET', jobKey, 'data')
  if not data then
    return nil
  end
  local head = string.match(data, '^{"v":%d+,"adResponseId":"[%x-]+","adAckId":"[%x-]+","publisher":"[^"]*"')
  local request = string.match(data, '"requestId":"[%w_.:-]*"')
  redis.call('HSET', jobKey, 'name', '', 'data', head and request and head .. ',"body":"",' .. request .. '}' or 'null')
  return channelIn(data)
end
