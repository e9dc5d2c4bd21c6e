-- Keys and steps shared by the scripts of a provider account's gate. All keys share a partition's hash tag.
local gateKey = KEYS[1]     -- hash: phase, reason, since, next and last (probed) probe, tokens, at (of the tokens)
local releasedKey = KEYS[2] -- zset: publisher|id let through and not yet taken, by the end of its lease
local busyKey = KEYS[3]     -- set: accounts that aren't closed, or for which something waits
-- @include clock

local function phaseOf()
  return redis.call('HGET', gateKey, 'phase') or 'closed'
end

local function enter(phase, now, reason)
  redis.call('HSET', gateKey, 'phase', phase, 'since', now, 'reason', reason, 'tokens', 0, 'at', now)
end

-- Attempts a second that a recovering account gets: growing through the first minute up to its bound
-- (less the burst that `burstOf` adds), then twice as many with each further minute.
local function rateOf(since, now, bound)
  -- A clock that was set back makes no negative rate.
  local minutes = math.max(now - since, 0) / 60000
  local top = bound / 1.2
  if minutes < 1 then
    return top * (0.1 + 0.9 * minutes)
  end
  return top * 2 ^ math.min(math.floor(minutes), 20)
end

-- Attempts that may go out at one moment after a pause.
local function burstOf(rate)
  return math.max(1, rate * 0.2)
end
