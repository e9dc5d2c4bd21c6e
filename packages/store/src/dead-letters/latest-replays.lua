-- The latest bulk replays, newest first. Writes nothing.
-- ARGV: 1 most replays, 2 prefix of replays' keys
-- Returns [id, fields and values, id, fields and values …]. Replays whose record has expired are left out.
-- @include redis/ledger
-- @include dead-letters/replay-keys
local found = {}
for _, id in ipairs(redis.call('ZREVRANGE', replaysKey, 0, ARGV[1] - 1)) do
  local fields = redis.call('HGETALL', ARGV[2] .. id)
  if #fields > 0 then
    table.insert(found, id)
    table.insert(found, fields)
  end
end
return found
