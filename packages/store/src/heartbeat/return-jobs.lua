-- Removes the processes that are gone, and returns the jobs that they ran to the waiting jobs. A process that lives
-- after all and completes such a job books its outcome, and is told that it has lost the job: as if the job's lock had
-- run out (invariants 3 and 4).
-- KEYS: 1 heartbeat, 2 processes, as in heartbeat/heartbeat.lua; then those of `returnJobs`
-- ARGV: 1 before a process' id: its lifeline, 2 prefix of job keys, 3 id of the process that asks, which isn't gone
-- Clock: Redis'. TTL: none.
-- Returns for each {its value in the hash of processes, how many jobs it ran}.
-- @include redis/when-full
-- @include bullmq/return-jobs
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- @include heartbeat/gone
local gone = {}
local all = redis.call('HGETALL', KEYS[2])
for at = 1, #all, 2 do
  local id, stored = all[at], all[at + 1]
  if id ~= ARGV[3] and isGone(stored, ARGV[1] .. id) then
    redis.call('HDEL', KEYS[2], id)
    gone[#gone + 1] = {stored, returnJobs({unpack(KEYS, 3)}, ARGV[2], id)}
  end
end
return gone
