-- Starts a bulk replay or a bulk discard, or counts the letters that one would cover. It changes no letter:
-- dead-letters/replay-batch.lua and dead-letters/discard-batch.lua do.
-- ARGV: 1 its id, 2 publisher, 3 reason, 4 code, 5 since and 6 until in ms, '' for none, 7 operator,
--       8 details of the audit as a JSON object, 9 prefix of the records' keys, 10 `dry` to count only,
--       11 `replay` or `discard`, then further fields of its record and their values
-- Clock: Redis'. TTL: none while it runs.
-- Returns {how many dead letters it covers, the latest time of death that it covers}.
-- @include redis/ledger
-- @include dead-letters/bulk-record
-- @include dead-letters/dead-index
-- @include dead-letters/covered
-- @include dead-letters/audit
local now = clockMs()
local created = string.format('%.0f', now)
-- All letters that are dead now, also those whose death is after now because Redis' clock was set back.
local latestDeath = redis.call('ZREVRANGE', deadKey, 0, 0, 'WITHSCORES')[2] or 0
local last = string.format('%.0f', math.max(now, tonumber(latestDeath)))
local filter = {publisher = ARGV[2], reason = ARGV[3], code = ARGV[4], since = ARGV[5], ['until'] = ARGV[6], last = last}
local matched = countDead(filter)
if ARGV[10] == 'dry' or redis.call('EXISTS', bulkKey) == 1 then
  return {matched, last}
end
-- @include redis/when-full
redis.call('HSET', bulkKey, 'state', 'running', 'publisher', ARGV[2], 'reason', ARGV[3], 'code', ARGV[4],
  'since', ARGV[5], 'until', ARGV[6], 'matched', matched, 'created', created, 'last', last, 'by', ARGV[7],
  'updated', created, 'tokens', 0, 'refilled', string.format('%.0f', clockUs()), unpack(ARGV, 12))
redis.call('SET', coveredKey, math.max(tonumber(last), tonumber(redis.call('GET', coveredKey)) or 0))
redis.call('ZADD', bulksKey, created, ARGV[1])
redis.call('SADD', runningKey, ARGV[1])
-- Forget the ids of those whose records have expired. A few at each start are enough, because a start adds only one.
for _, old in ipairs(redis.call('ZRANGE', bulksKey, 0, 9)) do
  if redis.call('EXISTS', ARGV[9] .. old) == 0 then
    redis.call('ZREM', bulksKey, old)
  end
end
local details = string.gsub(ARGV[8], '}$', ',"matched":' .. matched .. '}')
audit(auditKey, now, {by = ARGV[7], action = ARGV[11] .. 's_start', publisher = ARGV[2], [ARGV[11]] = ARGV[1],
  details = details})
return {matched, last}
