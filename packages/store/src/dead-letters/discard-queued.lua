-- One step of a bulk discard of queued acknowledgments. Any worker may run it at any time (docs/adr/0012), and a step may be done
-- twice: all progress is in Redis.
-- 1. It covers what was queued when it was started. Nothing indexes that by publisher or by unknown ids, so the caller finds
--    it, some in each step, newest first, and says how far it has come. A step that comes late moves the place back; then
--    some is searched again.
-- 2. What an attempt holds is kept in a set, and tried again at the end until the attempt is over.
-- 3. The rest is left for another call once the jobs' data are many bytes, so that Redis isn't held up. The place changes when all
--    was looked at.
-- ARGV: 1 discard's id, 2 prefix of entry keys, 3 prefix of the keys of parked acknowledgments, 4 wait in ms until other
--       workers may lease the outbox tasks, 5 retention in ms, 6 place where the next step begins (`held`
--       once all was searched), 7 most bytes of jobs' data; then for each its id and the key of its job's payload
-- Clock: Redis'. TTL: the record lives for the retention once the discard has ended, and so do discarded entries and the set.
-- Returns {state or '', outbox tasks of those that were discarded, now in µs, how many were looked at}.
-- @include redis/when-full
-- @include redis/ledger
-- @include redis/stored-bytes
-- @include dead-letters/bulk-record
-- @include dead-letters/discard-entry
-- @include dead-letters/leave-queue
-- @include dead-letters/replay-outcome
-- @include dead-letters/audit
-- @include dead-letters/end-discard
local nowUs = clockUs()
local now = math.floor(nowUs / 1000)
local discard, state = readRunning(ARGV[1], {'by'})
if not discard then
  return {state, {}, nowUs, 0}
end
local heldKey = bulkKey .. ':held' -- set: ids that an attempt held
local tasks, bytes = {}, 0

local function isCovered(id, entryState, publisher, recorded)
  return entryState == 'queued' and (discard.publisher == '' or discard.publisher == publisher)
    and (discard.unknown == '' or not recorded)
    and tonumber(redis.call('ZSCORE', queuedKey, id) or 0) <= tonumber(discard.last)
end

local function discardOne(id, jobKey)
  local key = ARGV[2] .. id
  local entryState, publisher, recorded, replay = unpack(redis.call('HMGET', key, 's', 'p', 'r', 'R'))
  if not isCovered(id, entryState, publisher, recorded) then
    redis.call('SREM', heldKey, id)
  elseif isHeld(jobKey) then
    redis.call('SADD', heldKey, id)
    redis.call('PEXPIRE', heldKey, ARGV[5])
  else
    redis.call('SREM', heldKey, id)
    leaveQueue(key, id, publisher, ARGV[3])
    table.insert(tasks, discardEntry(key, id, publisher, 'queued', now, now + ARGV[4], ARGV[5]))
    countOutcome(key, replay, 'discarded')
    bytes = bytes + tellCallerOf(jobKey, id, publisher)
  end
end

local at = 8
while at < #ARGV and bytes < tonumber(ARGV[7]) do
  discardOne(ARGV[at], ARGV[at + 1])
  at = at + 2
end
local seen = (at - 8) / 2
local discarded = countDiscarded(tasks, now)
if at < #ARGV then
  return {'running', tasks, nowUs, seen}
end
redis.call('HSET', bulkKey, 'place', ARGV[6])
if ARGV[6] ~= 'held' or redis.call('EXISTS', heldKey) == 1 then
  return {'running', tasks, nowUs, seen}
end
completeDiscard(ARGV[1], discard, discarded, now, ARGV[5])
return {'completed', tasks, nowUs, seen}
