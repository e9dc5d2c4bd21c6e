-- One step of a bulk replay: moves as many dead letters to queued as the rate allows now. Any worker may run it at any
-- time (docs/adr/0012). All progress is in Redis, so a killed worker leaves nothing behind.
-- 1. The rate is a token bucket by Redis' clock that starts empty. Since its creation a replay has put back
--    rate × elapsed at most, whatever the number of workers; a burst is one second's worth.
-- 2. It covers letters that were dead at its creation. A letter that dies again dies later (dead-letters/dead-index.lua),
--    so it is put back once.
-- 3. It stops if most letters fail again (docs/adr/0044): `stop_share` of those that ended, once `stop_least` have ended. The
--    first `stop_least` letters are a sample: the others wait until the sample has ended, but no longer than the limit.
-- 4. Its end is audited, because the audit outlives the record.
-- ARGV: 1 replay's id, 2 most letters, 3 prefix of entry keys, 4 wait in ms until other workers may lease the outbox
--       tasks, 5 retention in ms, 6 limit of the wait for the sample in ms
-- Clock: Redis'. TTL: the record lives for the retention once the replay has ended.
-- Returns {state or '', outbox tasks of the letters that were moved, now in µs}.
-- @include redis/when-full
-- @include redis/ledger
-- @include redis/stored-bytes
-- @include dead-letters/bulk-record
-- @include dead-letters/dead-index
-- @include dead-letters/replay-dead
-- @include dead-letters/covered
-- @include dead-letters/take-turns
-- @include dead-letters/audit
local nowUs = clockUs()
local now = math.floor(nowUs / 1000)
local replay, state = readRunning(ARGV[1], {'rate', 'tokens', 'refilled', 'replayed', 'updated', 'stop_share', 'stop_least',
  'delivered', 'refused', 'dead', 'by'})
if not replay then
  return {state, {}, nowUs}
end

local function numberOf(name)
  return tonumber(replay[name]) or 0
end
-- A refusal is final and earns nothing either, so it counts like a death.
local failed = numberOf('dead') + numberOf('refused')
local ended = failed + numberOf('delivered')
local share, least = tonumber(replay.stop_share), numberOf('stop_least')
if share and ended >= least and failed >= share * ended then
  -- Older versions know no other state for a replay that ended early.
  redis.call('HSET', bulkKey, 'stopped', 1)
  endBulk(ARGV[1], 'cancelled', now, ARGV[5])
  audit(auditKey, now, {by = 'adrelay', action = 'replays_stop', publisher = replay.publisher, replay = ARGV[1],
    details = '{"failed":' .. failed .. ',"ended":' .. ended .. '}'})
  return {'stopped', {}, nowUs}
end

local rate = tonumber(replay.rate)
local elapsedUs = math.max(nowUs - tonumber(replay.refilled), 0)
local tokens = math.min(tonumber(replay.tokens) + elapsedUs * rate / 1000000, math.max(rate, 1))
local left = math.min(math.floor(tokens), tonumber(ARGV[2]))
if share and ended < least then
  local sampleLeft = least - numberOf('replayed')
  local waitedMs = now - numberOf('updated')
  if sampleLeft > 0 then
    left = math.min(left, sampleLeft)
  elseif waitedMs >= 0 and waitedMs < tonumber(ARGV[6]) then
    left = 0
  end
end

local moved = {}
takeTurns(replay, left, ARGV[3], function(entry, id, publisher, reason, code)
  table.insert(moved, replayDead(entry, id, publisher, reason, code, now, now + ARGV[4], bulkKey))
end)
local replayed = redis.call('HINCRBY', bulkKey, 'replayed', #moved)
redis.call('HINCRBY', bulkKey, 'waiting', #moved)
redis.call('HSET', bulkKey, 'tokens', string.format('%.6f', tokens - #moved), 'refilled', string.format('%.0f', nowUs))
if #moved > 0 then
  redis.call('HSET', bulkKey, 'updated', now)
end
if countDead(replay) > 0 then
  return {'running', moved, nowUs}
end
endBulk(ARGV[1], 'completed', now, ARGV[5])
audit(auditKey, now, {by = replay.by, action = 'replays_end', publisher = replay.publisher, replay = ARGV[1],
  details = '{"replayed":' .. replayed .. '}'})
return {'completed', moved, nowUs}
