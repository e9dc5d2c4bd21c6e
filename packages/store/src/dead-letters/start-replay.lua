-- Starts a bulk replay, or counts the letters that one would cover. It moves nothing: dead-letters/replay-batch.lua does.
-- ARGV: 1 replay's id, 2 publisher or '', 3 reason or '', 4 since and 5 until in ms or '', 6 rate per second,
--       7 operator, 8 details of the audit as a JSON object, 9 prefix of replays' keys, 10 `dry` to count only
-- Clock: Redis'. TTL: none while it runs.
-- Returns how many dead letters it covers.
-- @include redis/ledger
-- @include dead-letters/replay-keys
-- @include dead-letters/dead-index
-- @include dead-letters/replays
-- @include dead-letters/audit
local now = clockMs()
local created = string.format('%.0f', now)
-- All letters that are dead now, also those whose death is after now because Redis' clock was set back.
local latestDeath = redis.call('ZREVRANGE', deadKey, 0, 0, 'WITHSCORES')[2] or 0
local last = string.format('%.0f', math.max(now, tonumber(latestDeath)))
local filter = {publisher = ARGV[2], reason = ARGV[3], since = ARGV[4], ['until'] = ARGV[5], last = last}
local matched = countDead(filter)
if ARGV[10] == 'dry' or redis.call('EXISTS', replayKey) == 1 then
  return matched
end
-- @include redis/when-full
redis.call('HSET', replayKey, 'state', 'running', 'publisher', ARGV[2], 'reason', ARGV[3], 'since', ARGV[4],
  'until', ARGV[5], 'rate', ARGV[6], 'matched', matched, 'replayed', 0, 'created', created, 'last', last, 'by', ARGV[7],
  'updated', created, 'tokens', 0, 'refilled', string.format('%.0f', clockUs()))
redis.call('SET', coveredKey, math.max(tonumber(last), tonumber(redis.call('GET', coveredKey)) or 0))
redis.call('ZADD', replaysKey, created, ARGV[1])
redis.call('SADD', runningKey, ARGV[1])
-- Forget the ids of replays whose records have expired. A few at each start are enough, because a start adds only one.
for _, old in ipairs(redis.call('ZRANGE', replaysKey, 0, 9)) do
  if redis.call('EXISTS', ARGV[9] .. old) == 0 then
    redis.call('ZREM', replaysKey, old)
  end
end
local details = string.gsub(ARGV[8], '}$', ',"matched":' .. matched .. '}')
audit(auditKey, now, {by = ARGV[7], action = 'replays_start', replay = ARGV[1], details = details})
return matched
