-- The leases, the wait and the text of a turn. Needs journal/drop-turn.lua.
-- 1. A step with a lease runs. The turn is due when no lease is left and its wait is over; a worker then settles it.
-- 2. Only its own end takes a step's lease away. A lease that has run out stays: its step may have been slow and come back,
--    and if it doesn't, the turn counts as orphaned.
-- 3. All times are by Redis' clock.
local LEASE_MS = 20000
-- A turn that is due comes up again after this, unless it was settled.
local CLAIM_MS = 5000
local TEXT_MAX_BYTES = 1024 * 1024

-- Its fields, or nil.
local function readTurn(id)
  local fields = redis.call('HGETALL', turnKeyOf(id))
  if #fields == 0 then
    return nil
  end
  local turn = {}
  for at = 1, #fields, 2 do
    turn[fields[at]] = fields[at + 1]
  end
  return turn
end

-- The end of the latest lease, and whether there is one at all. `but`: a step that doesn't count.
local function latestLease(turn, but)
  local latest, isAny = 0, false
  for field, value in pairs(turn) do
    local step = string.match(field, '^l(%d+)$')
    if step and step ~= but then
      latest, isAny = math.max(latest, tonumber(value)), true
    end
  end
  return latest, isAny
end

local function textOfTime(time)
  return string.format('%.0f', time)
end

-- Says when the turn is due, in the index of awaiting entries.
local function setDue(id, time)
  redis.call('ZADD', awaitingKey, textOfTime(time), id)
end

local function dueAt(turn)
  return math.max((latestLease(turn)), tonumber(turn.w or 0))
end

-- A new lease ends after all others.
local function renewLease(id, step, wait, now)
  local lease = now + LEASE_MS
  redis.call('HSET', turnKeyOf(id), 'l' .. step, textOfTime(lease))
  setDue(id, math.max(lease, tonumber(wait or 0)))
end

-- A step that joined runs, and the wait is over.
local function joinStep(id, step, now)
  redis.call('HSET', turnKeyOf(id), 'n', step)
  redis.call('HDEL', turnKeyOf(id), 'w', 'W')
  renewLease(id, step, nil, now)
end

-- A longer wait that runs already stays. `turn` is changed, too.
local function setWait(id, turn, waitMs, now)
  local ends = math.max(tonumber(turn.w or 0), now + waitMs)
  turn.w, turn.W = textOfTime(ends), textOfTime(math.max(tonumber(turn.W or 0), waitMs))
  redis.call('HSET', turnKeyOf(id), 'w', turn.w, 'W', turn.W)
end

-- Appends what a step has written, once. `known` is its last sequence, `bytes` those of the turn's text so far; either may be
-- false. Once a piece is too much, all later ones are: a text with a hole would be worse than one that ends early.
-- Returns whether pieces before this one are missing: Redis came back older than it was. Then nothing is appended.
local function appendText(id, step, sequence, text, known, bytes)
  local ahead = tonumber(sequence) - tonumber(known or 0)
  if ahead ~= 1 then
    return ahead > 1
  end
  local turnKey = turnKeyOf(id)
  local sum = tonumber(bytes or 0) + #text
  if sum > TEXT_MAX_BYTES then
    sum = TEXT_MAX_BYTES + 1
  elseif #text > 0 then
    redis.call('RPUSH', textKeyOf(id), step .. ',' .. sequence .. ',' .. text)
  end
  redis.call('HSET', turnKey, 's' .. step, sequence, 'b', sum)
  return false
end

-- After Redis' clock was set back. Returns the new time at which the turn is due, or nil if `due` can be right.
local function mendTurn(id, turn, due, now)
  for field, value in pairs(turn) do
    local latest = string.match(field, '^l%d+$') and now + LEASE_MS or field == 'w' and now + tonumber(turn.W or 0)
    if latest and tonumber(value) > latest + SET_BACK_MS then
      turn[field] = textOfTime(latest)
      redis.call('HSET', turnKeyOf(id), field, turn[field])
    end
  end
  local latest = math.max(dueAt(turn), now + CLAIM_MS)
  return due > latest + SET_BACK_MS and latest
end
