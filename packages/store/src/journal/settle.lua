-- Settles turns: queues the acknowledgment of each with its text, and books it, in one step with the end of the turn.
-- 1. As in intake/accept.lua: queue first, then ledger (invariant 2), and only what the queue holds is booked (invariant 1).
-- 2. No quota refuses it, and it runs on a full Redis. Its id is known and its ad was sold, and the text leaves the journal.
-- 3. The text was read before. If the journal has another one now, or the ad response another publisher, nothing is done,
--    and the caller reads again.
-- 4. A proxy settles when its step has ended: no other step may have a lease. A worker settles what is due: the wait must be
--    over as well.
-- 5. Turns that end by themselves count as answers, by what was found in them. So answers are the turns that ended, without the
--    superseded and the manual ones.
-- 6. A manual turn has ended at its begin, and its entry waits for its backend. If no text of the model's has reached the
--    backend, the proxy acknowledges in its place, unless that has been done.
-- KEYS: 8 to 12 as bullmq/queue-job.lua reads them, 8, 9 and 13 as `giveTurns` reads them
-- ARGV: 1 prefix of entry keys, 2 prefix of job keys, 3 options of jobs, 4 retention of abandoned entries in ms; then for each: id, publisher,
--       fingerprint of the text, job's id, job's data, or '' if the turn is abandoned because it has no text, the step that
--       ended or '' for a worker, its outcome or '', how many pieces the journal had, or '' if the caller relies on there
--       being one step only, `1` if a part of the text couldn't be read, what was found of the ad (`mention,label`)
-- Clock: Redis', one reading for all. TTL: an abandoned entry lives for the retention.
-- Returns for each a code of SETTLED_CODES in redis/scripts.ts, or an error.
-- @include bullmq/queue-job
-- @include bullmq/turns
-- @include redis/when-full
-- @include redis/ledger
-- @include redis/batch
-- @include redis/stored-bytes
-- @include intake/acceptance
-- @include journal/turn
local MEMBERS = 10
local publishers = {} -- by the id of their job
local now = clockMs()
local nowText = textOfTime(now)

-- Whether another step runs, or the turn still waits.
local function isOpen(turn, step)
  return latestLease(turn, step) > now or (step == '' and tonumber(turn.w or 0) > now)
end

local function isChanged(id, turn, pieces)
  if pieces == '' then
    return turn.n ~= '1'
  end
  return redis.call('LLEN', textKeyOf(id)) ~= tonumber(pieces)
end

-- A lease that is left has run out. A step that ends after a later one, which was final, doesn't decide.
local function outcomeOf(turn, step, outcome)
  if step ~= '' then
    return tonumber(step) < tonumber(turn.f or 0) and turn.o or outcome
  end
  local _, isAny = latestLease(turn)
  return isAny and 'orphaned' or turn.o or 'orphaned'
end

local function isUnread(step, state, mark)
  return step ~= '' and state == 'awaiting' and string.sub(mark or '', 1, 1) == MANUAL
end

-- A worker of an older version may have called it missed. It stays so.
local function abandon(key, id, publisher, state, outcome)
  dropTurn(id, outcome)
  if state == 'awaiting' then
    redis.call('ZREM', awaitingKey, id)
    redis.call('HSET', key, 's', 'abandoned')
    redis.call('PEXPIRE', key, ARGV[4])
    add(gaugesKey, publisher .. '|awaiting', -1)
    count('abandoned', publisher)
  end
  return '4'
end

local function settle(at)
  local from = 5 + MEMBERS * (at - 1)
  local id, publisher, textHash, jobId, data, step, given, pieces, unreadable, finding =
    unpack(ARGV, from, from + MEMBERS - 1)
  local key = ARGV[1] .. id
  local turn = readTurn(id)
  local state, owner, mark = unpack(redis.call('HMGET', key, 's', 'p', 'T'))
  if not turn and not isUnread(step, state, mark) then
    -- A Redis that came back older than it was may know nothing of the ad response.
    return (step == '' or state) and '0' or '5'
  elseif turn and isOpen(turn, step) then
    return '2'
  end
  if state ~= 'awaiting' and state ~= 'missed' then
    dropTurn(id, 'superseded')
    return '0'
  elseif owner ~= publisher or (turn and isChanged(id, turn, pieces)) then
    return '3'
  end
  local outcome = turn and outcomeOf(turn, step, given)
  if data == '' then
    if turn then
      count('answers', turn.p, finding)
    end
    return abandon(key, id, publisher, state, outcome)
  end
  local job = {key = ARGV[2] .. jobId, id = jobId, name = textHash, data = data}
  if queueJob(job, ARGV[3], nowText) ~= textHash then
    -- It is of an acknowledgment that a worker will book. Then the turn ends.
    return '0'
  end
  publishers[jobId] = publisher
  local code = state == 'awaiting' and 1 or 2
  bookAccepted(key, id, publisher, textHash, code, nowText, #data + OVERHEAD_BYTES, {mark = JOURNALED, outcome = outcome})
  if turn then
    redis.call('HSET', key, 'M', finding)
    count('answers', turn.p, finding)
  end
  -- From now on a backend that acknowledges as well is told how it stands.
  redis.call('HSET', key, 'T', JOURNALED)
  if unreadable == '1' then
    count('turns_unreadable', publisher)
  end
  return '1'
end

local items = (#ARGV - 4) / MEMBERS
local replies = eachOf(items, settle)
-- As in intake/accept.lua.
pcall(giveTurns, {KEYS[8], KEYS[9], KEYS[13]}, ARGV[2], publishers, items + 100)
return replies
