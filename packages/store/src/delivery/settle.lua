-- Books the outcomes of attempts, by the step of delivery/settlement.lua.
-- KEYS: 1 to 7 as in redis/ledger.lua (1 is the first entry), from 8 on the other entries
-- ARGV: 1 to 3 as in delivery/settlement.lua, then 13 for each:
--       1 id, 2 event (deliver, refuse, die, retry, ambiguous), 3 label (verdict of a delivery, reason of a death),
--       4 attempt code, 5 provider's ack id or '', 6 duration of the attempt in ms,
--       7 channel of a waiting gateway or '', 8 message for it,
--       9 number of attempts that were booked when this one began,
--       10 wait before the next attempt in ms (retry, ambiguous),
--       11 1 if a failure counts, 0 for a probe's, which was made to learn about the provider (retry, ambiguous),
--       12 bytes of the caller's body (die), 13 the provider's public error or '' (retry, ambiguous, die)
-- Clock: Redis'. TTL: an entry that ends here lives for the retention.
-- Returns for each 1 if booked, 0 if it was booked before, -1 if the state doesn't allow it.
-- @include redis/when-full
-- @include redis/ledger
-- @include redis/batch
-- @include redis/stored-bytes
-- @include dead-letters/dead-index
-- @include delivery/settlement
local MEMBERS = 13
local replies = eachOf((#ARGV - 3) / MEMBERS, function(at)
  local from = 4 + MEMBERS * (at - 1)
  return settle(entryKeyOf(at), unpack(ARGV, from, from + MEMBERS - 1))
end)
leaveQueued()
return replies
