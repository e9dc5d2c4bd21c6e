-- Starts a bulk replay or a bulk discard, or counts the dead letters that one would cover. It changes no letter:
-- dead-letters/replay-batch.lua, discard-batch.lua and discard-queued.lua do. A count also notes up to which time it has counted,
-- because what comes later must not be covered by a bulk change that is bounded by the count.
-- ARGV: 1 its id, 2 publisher, 3 reason, 4 code, 5 `1` for unknown ids only, 6 since and 7 until in ms, '' for none, 8 operator,
--       9 details of the audit as a JSON object, 10 prefix of the records' keys, 11 `dry` to count only,
--       12 `replay` or `discard`, 13 how many queued acknowledgments it covers, '' if it is of dead letters, then further
--       fields of its record and their values
-- Clock: Redis'. TTL: none while it runs.
-- Returns {how many it covers, the latest time of death, or of queueing, that it covers}.
-- @include redis/ledger
-- @include dead-letters/bulk-record
-- @include dead-letters/dead-index
-- @include dead-letters/covered
-- @include dead-letters/audit
local now = clockMs()
local created = string.format('%.0f', now)
local isQueued = ARGV[13] ~= ''
-- All that are dead or queued now, also those whose time is after now because Redis' clock was set back.
local index = isQueued and queuedKey or deadKey
local latest = redis.call('ZREVRANGE', index, 0, 0, 'WITHSCORES')[2] or 0
local last = string.format('%.0f', math.max(now, tonumber(latest)))
local filter = {publisher = ARGV[2], reason = ARGV[3], code = ARGV[4], unknown = ARGV[5], since = ARGV[6], ['until'] = ARGV[7],
  last = last}
local matched = isQueued and tonumber(ARGV[13]) or countDead(filter)
local isDry = ARGV[11] == 'dry'
if not isDry and redis.call('EXISTS', bulkKey) == 1 then
  return {matched, last}
end
-- @include redis/when-full
local coveredKey = coveredKeyOf(index)
redis.call('SET', coveredKey, math.max(tonumber(last), tonumber(redis.call('GET', coveredKey)) or 0))
if isDry then
  return {matched, last}
end
redis.call('HSET', bulkKey, 'state', 'running', 'publisher', ARGV[2], 'reason', ARGV[3], 'code', ARGV[4],
  'unknown', ARGV[5], 'since', ARGV[6], 'until', ARGV[7], 'matched', matched, 'created', created, 'last', last, 'by', ARGV[8],
  'updated', created, 'tokens', 0, 'refilled', string.format('%.0f', clockUs()), unpack(ARGV, 14))
redis.call('ZADD', bulksKey, created, ARGV[1])
redis.call('SADD', runningKey, ARGV[1])
-- Forget the ids of those whose records have expired. A few at each start are enough, because a start adds only one.
for _, old in ipairs(redis.call('ZRANGE', bulksKey, 0, 9)) do
  if redis.call('EXISTS', ARGV[10] .. old) == 0 then
    redis.call('ZREM', bulksKey, old)
  end
end
local details = string.gsub(ARGV[9], '}$', ',"matched":' .. matched .. '}')
audit(auditKey, now, {by = ARGV[8], action = ARGV[12] .. 's_start', publisher = ARGV[2], [ARGV[12]] = ARGV[1],
  details = details})
return {matched, last}
