-- Adds jobs to the queue as BullMQ adds them: test/bullmq-insertion.test.ts compares what both leave in Redis. BullMQ's own
-- script adds a job of any kind, one in a call, and for each takes Redis as long as all the rest of intake (docs/adr/0069).
-- Nothing reads what is left out: the events, and the count from which BullMQ makes the ids of jobs without one.
-- KEYS: 8 the list of jobs that wait, 10 the queue's settings, 11 running jobs, 12 the marker, on which idle workers wait.
local waitKey, settingsKey, activeKey, markerKey = KEYS[8], KEYS[10], KEYS[11], KEYS[12]

-- Whether workers may take a job now. BullMQ wakes none otherwise.
local function isQueueOpen()
  local paused, concurrency = unpack(redis.call('HMGET', settingsKey, 'paused', 'concurrency'))
  return not paused and (not concurrency or redis.call('LLEN', activeKey) < tonumber(concurrency))
end

local hasWoken = false -- once in a call is enough: no worker comes in between

-- options: BullMQ's, as JSON. Adds the job unless there is one with this id. Returns the name of the job that the queue then
-- holds. Raises what Redis raises.
local function queueJob(job, options, timestamp)
  local known = redis.call('HGET', job.key, 'name')
  if known then
    return known
  end
  redis.call('HSET', job.key, 'name', job.name, 'data', job.data, 'opts', options, 'timestamp', timestamp, 'delay', '0', 'priority', '0')
  redis.call('LPUSH', waitKey, job.id)
  if not hasWoken and isQueueOpen() then
    redis.call('ZADD', markerKey, 0, '0')
  end
  hasWoken = true
  return job.name
end
