-- Puts dead letters into the index of kinds that a worker of an older version left out, a bounded batch at a
-- time. Costs a look at the sizes while nothing is missing.
-- ARGV: 1 rank to go on from, 2 most letters, 3 prefix of entry keys
-- Clock: none. TTL: none.
-- Returns the rank to go on from, 0 after the last one, or -1 if nothing is missing.
-- @include books
-- @include dead-letters
local indexed = 0
for _, kind in ipairs(redis.call('SMEMBERS', deadKindsKey)) do
  indexed = indexed + redis.call('ZCARD', deadKindKey(kind))
end
if indexed >= redis.call('ZCARD', deadKey) then
  return -1
end
local from = tonumber(ARGV[1])
local found = redis.call('ZRANGE', deadKey, from, from + ARGV[2] - 1, 'WITHSCORES')
for at = 1, #found, 2 do
  local state, publisher, reason = unpack(redis.call('HMGET', ARGV[3] .. found[at], 's', 'p', 'x'))
  if state == 'dead' then
    addDead(found[at], publisher, reason or '', found[at + 1])
  else
    redis.call('ZREM', deadKey, found[at])
  end
end
return #found == 0 and 0 or from + ARGV[2]
