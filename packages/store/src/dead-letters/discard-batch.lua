-- One step of a bulk discard: ends dead letters for good. Any worker may run it at any time (docs/adr/0012). All progress is
-- in Redis, so a killed worker leaves nothing behind. It covers letters that were dead at its creation. Its end is
-- audited, because the audit outlives the record.
-- ARGV: 1 discard's id, 2 most letters, 3 prefix of entry keys, 4 wait in ms until other workers may lease the outbox
--       tasks, 5 retention in ms
-- Clock: Redis'. TTL: the record lives for the retention once the discard has ended, and so does a discarded entry.
-- Returns {state or '', outbox tasks of the letters that were discarded, now in µs}.
-- @include redis/when-full
-- @include redis/ledger
-- @include redis/stored-bytes
-- @include dead-letters/bulk-record
-- @include dead-letters/dead-index
-- @include dead-letters/discard-entry
-- @include dead-letters/covered
-- @include dead-letters/take-turns
-- @include dead-letters/audit
local nowUs = clockUs()
local now = math.floor(nowUs / 1000)
local discard, state = readRunning(ARGV[1], {'by'})
if not discard then
  return {state, {}, nowUs}
end

local tasks = {}
takeTurns(discard, tonumber(ARGV[2]), ARGV[3], function(entry, id, publisher, reason, code)
  removeDead(id, publisher, reason, code)
  table.insert(tasks, discardEntry(entry, id, publisher, 'dead', now, now + ARGV[4], ARGV[5]))
end)
local discarded = redis.call('HINCRBY', bulkKey, 'discarded', #tasks)
if #tasks > 0 then
  redis.call('HSET', bulkKey, 'updated', now)
end
if countDead(discard) > 0 then
  return {'running', tasks, nowUs}
end
endBulk(ARGV[1], 'completed', now, ARGV[5])
audit(auditKey, now, {by = discard.by, action = 'discards_end', publisher = discard.publisher, discard = ARGV[1],
  details = '{"discarded":' .. discarded .. '}'})
return {'completed', tasks, nowUs}
