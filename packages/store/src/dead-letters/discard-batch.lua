-- One step of a bulk discard: ends dead letters for good. Any worker may run it at any time (docs/adr/0012). All progress is
-- in Redis, so a killed worker leaves nothing behind. It covers letters that were dead at its creation.
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
-- @include dead-letters/end-discard
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
local discarded = countDiscarded(tasks, now)
if countDead(discard) > 0 then
  return {'running', tasks, nowUs}
end
completeDiscard(ARGV[1], discard, discarded, now, ARGV[5])
return {'completed', tasks, nowUs}
