-- One step of the search for a session's ad responses, by the hash that their entries keep. There is no index of sessions:
-- it would make each entry a third larger, for something that is rare (docs/adr/0050).
-- An entry that is there during the whole search is found. It may be found twice. What another publisher has adopted is found under
-- both: under the one whose session it was, and under its own.
-- Each process of Redis has an order of its own for its keys. So a cursor means something only to the process that made it: after
-- a restart or a failover the search begins again. Without the right to INFO nobody knows, and the search goes on.
-- KEYS: 1 any key of the partition
-- ARGV: 1 cursor to go on from, `0` for the first step, 2 the run of Redis that made it, '' if that isn't known, 3 about how many keys
--       to look at, 4 pattern of entry keys, 5 length of their prefix, 6 publisher, then the hashes that the session may have
-- Clock: none. Writes nothing.
-- Returns {the next cursor, `0` at the end; the run of Redis; ids}.
local hashes = {}
for at = 7, #ARGV do
  hashes[ARGV[at]] = true
end
local info = redis.pcall('INFO', 'server')
local run = type(info) == 'string' and string.match(info, 'run_id:(%x+)') or ''
local from = run == ARGV[2] and ARGV[1] or '0'
local cursor, keys = unpack(redis.call('SCAN', from, 'MATCH', ARGV[4], 'COUNT', ARGV[3]))
local ids = {}
for _, key in ipairs(keys) do
  local publisher, session, first = unpack(redis.call('HMGET', key, 'p', 'S', 'O'))
  if (publisher == ARGV[6] or first == ARGV[6]) and session and hashes[session] then
    ids[#ids + 1] = string.sub(key, ARGV[5] + 1)
  end
end
return {cursor, run, ids}
