-- Books what came of attempts: includes/settlement.lua has the step.
-- KEYS: the entries of all but the first from 8 on
-- ARGV: 1 and 2 as in includes/settlement.lua, then 13 for each:
--       1 id, 2 event (deliver, refuse, die, retry), 3 label (verdict of deliver, reason of die),
--       4 attempt code, 5 provider's ack id or '', 6 duration of the attempt in ms,
--       7 channel of a waiting gateway or '', 8 message for it,
--       9 how many attempts were booked when this one began,
--       10 wait before the next attempt in ms (retry),
--       11 1 if a failure counts (retry), 0 for a probe's: it was made for the provider's sake,
--       12 bytes of the caller's body and 13 the provider's public error or '' (die)
-- Clock: Redis'. TTL: an entry that ends here lives for the retention.
-- Returns for each 1 if booked, 0 if it was so before, -1 if the state doesn't allow it.
-- @include books
-- @include batch
-- @include dead-letters
-- @include settlement
local MEMBERS = 13
local replies = eachOf((#ARGV - 2) / MEMBERS, function(at)
  local from = 3 + MEMBERS * (at - 1)
  return settle(entryKeyOf(at), unpack(ARGV, from, from + MEMBERS - 1))
end)
leaveQueued()
return replies
