-- Keys and steps that the scripts on a provider account's circuit breaker share. All keys share a partition's hash tag.
local circuitKey = KEYS[1]     -- hash: phase, reason, since, time of the next probe (next) and the last one (probed), tokens, at (of the tokens)
local releasedKey = KEYS[2] -- zset: publisher|id that was released and not yet claimed, by the end of its lease
local busyKey = KEYS[3]     -- set: accounts whose breaker isn't closed, or that have parked acknowledgments

-- By Redis' own clock, as in redis/ledger.lua.
local function clockMs()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function phaseOf()
  return redis.call('HGET', circuitKey, 'phase') or 'closed'
end

local function enter(phase, now, reason)
  redis.call('HSET', circuitKey, 'phase', phase, 'since', now, 'reason', reason, 'tokens', 0, 'at', now)
end

-- Attempts per second for a recovering account: the rate grows through the first minute up to its bound (less the
-- burst that `burstOf` adds), then doubles with each further minute.
local function rateOf(since, now, bound)
  -- A clock that was set back must not make a negative rate.
  local minutes = math.max(now - since, 0) / 60000
  local top = bound / 1.2
  if minutes < 1 then
    return top * (0.1 + 0.9 * minutes)
  end
  return top * 2 ^ math.min(math.floor(minutes), 20)
end

-- Attempts that may go out together after a pause.
local function burstOf(rate)
  return math.max(1, rate * 0.2)
end
