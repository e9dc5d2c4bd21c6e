-- What each step of a bulk discard leaves in its record, and its end. The end is audited, because the audit outlives the record.
-- Needs redis/ledger.lua, bulk-record.lua and audit.lua.

-- Counts what a step discarded. Returns how many the steps have discarded together.
local function countDiscarded(tasks, now)
  if #tasks > 0 then
    redis.call('HSET', bulkKey, 'updated', now)
  end
  return redis.call('HINCRBY', bulkKey, 'discarded', #tasks)
end

local function completeDiscard(id, discard, discarded, now, retentionMs)
  endBulk(id, 'completed', now, retentionMs)
  audit(auditKey, now, {by = discard.by, action = 'discards_end', publisher = discard.publisher, discard = id,
    details = '{"discarded":' .. discarded .. '}'})
end
