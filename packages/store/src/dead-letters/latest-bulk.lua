-- The latest bulk replays or bulk discards, newest first. Writes nothing.
-- ARGV: 1 most of them, 2 prefix of the records' keys
-- Returns [id, fields and values, id, fields and values …]. Those whose record has expired are left out.
-- @include redis/ledger
-- @include dead-letters/bulk-record
local found = {}
for _, id in ipairs(redis.call('ZREVRANGE', bulksKey, 0, ARGV[1] - 1)) do
  local fields = redis.call('HGETALL', ARGV[2] .. id)
  if #fields > 0 then
    table.insert(found, id)
    table.insert(found, fields)
  end
end
return found
