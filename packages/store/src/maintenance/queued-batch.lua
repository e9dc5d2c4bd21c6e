-- Queued entries in the order in which they were queued, for a comparison with the queue.
-- ARGV: 1 rank of the first (0 is the oldest), 2 most entries, 3 least age in ms, 4 prefix of entry keys,
--       5 prefix of the keys of parked acknowledgments
-- Clock: Redis'. Writes nothing.
-- Returns {id, 1 if its attempt should have been made by now, id, …}; fewer than asked for at the end.
-- @include redis/ledger
local now = clockMs()
local first, untilMs = tonumber(ARGV[1]), now - ARGV[3]
local members = redis.call('ZRANGE', queuedKey, first, first + ARGV[2] - 1, 'WITHSCORES')
local batch = {}
for at = 1, #members, 2 do
  local id = members[at]
  if tonumber(members[at + 1]) <= untilMs then
    local publisher, wait, log = unpack(redis.call('HMGET', ARGV[4] .. id, 'p', 'w', 'l'))
    local isDue = (tonumber(nextAttempt(wait, log, now)) or 0) <= untilMs
    local isParked = redis.call('ZSCORE', ARGV[5] .. (publisher or ''), id)
    table.insert(batch, id)
    table.insert(batch, isDue and not isParked and 1 or 0)
  end
end
return batch
