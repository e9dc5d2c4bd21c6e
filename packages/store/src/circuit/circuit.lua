-- Keys and steps that the scripts on a provider account's circuit breaker share. All keys share a partition's hash tag.
-- Redis' clock may be set back. So a time in the future counts only as far as the longest wait that can have made it.
local circuitKey = KEYS[1]  -- hash: phase, reason, since, accused, next (probe), probed, tokens, at (of the tokens), name, by,
                            -- asked (when a worker that has the account asked last)
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

-- `accused`: the only publisher whose acknowledgments opened the breaker, or '' if there were several.
local function enter(phase, now, reason, accused)
  redis.call('HSET', circuitKey, 'phase', phase, 'since', now, 'reason', reason, 'accused', accused, 'tokens', 0, 'at', now)
end

-- A breaker that nobody asks about for a day is forgotten: its account's key may be out of use.
local function keepForADay()
  redis.call('PEXPIRE', circuitKey, 86400000)
end

local ASKED_AGAIN_MS = 5000

-- Notes that a worker that has this account still runs. Not each time, because it costs a write. A full Redis may refuse it.
local function noteAsked(account, now)
  local asked = tonumber(redis.call('HGET', circuitKey, 'asked')) or 0
  if math.abs(now - asked) >= ASKED_AGAIN_MS then
    redis.pcall('HSET', circuitKey, 'asked', now)
    redis.pcall('SADD', busyKey, account)
    keepForADay()
  end
end

local function publisherOf(member)
  return string.match(member, '^([^|]*)|')
end

-- Whether an open breaker may make a probe now. An acknowledgment of a publisher that isn't accused need not wait: the
-- provider may be well, and then only one publisher's acknowledgments fail.
local function isProbeDue(now, waitMaxMs, publisher)
  local due, accused = unpack(redis.call('HMGET', circuitKey, 'next', 'accused'))
  due = math.min(tonumber(due) or 0, now + waitMaxMs)
  local isOther = accused and accused ~= '' and publisher and publisher ~= accused
  return now >= due or isOther or false, due
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
