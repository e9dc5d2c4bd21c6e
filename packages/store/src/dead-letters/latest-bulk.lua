-- A page of bulk replays or bulk discards, newest first. Writes nothing.
-- ARGV: 1 rank of the first (0 is the newest), 2 most of them, 3 prefix of the records' keys
-- Returns {how many ids were read, [id, fields and values, id, fields and values …]}. Those whose record has expired are left out.
-- If fewer were read than asked for, it is the last page.
-- @include redis/ledger
-- @include dead-letters/bulk-record
local first, found = tonumber(ARGV[1]), {}
local ids = redis.call('ZREVRANGE', bulksKey, first, first + ARGV[2] - 1)
for _, id in ipairs(ids) do
  local fields = redis.call('HGETALL', ARGV[3] .. id)
  if #fields > 0 then
    table.insert(found, id)
    table.insert(found, fields)
  end
end
return {#ids, found}
