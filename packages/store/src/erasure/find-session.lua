-- One step of the search for a session's ad responses, by the hash that their entries keep. There is no index of sessions:
-- it would make each entry a third larger, for something that is rare (docs/adr/0050).
-- An entry that is there during the whole search is found. It may be found twice.
-- KEYS: 1 any key of the partition
-- ARGV: 1 place to go on from, `0` for the first step, 2 about how many keys to look at, 3 pattern of entry keys,
--       4 length of their prefix, 5 publisher, then the hashes that the session may have
-- Clock: none. Writes nothing.
-- Returns {the next place, `0` at the end; ids}.
local hashes = {}
for at = 6, #ARGV do
  hashes[ARGV[at]] = true
end
local place, keys = unpack(redis.call('SCAN', ARGV[1], 'MATCH', ARGV[3], 'COUNT', ARGV[2]))
local ids = {}
for _, key in ipairs(keys) do
  local publisher, session = unpack(redis.call('HMGET', key, 'p', 'S'))
  if publisher == ARGV[5] and session and hashes[session] then
    ids[#ids + 1] = string.sub(key, ARGV[4] + 1)
  end
end
return {place, ids}
