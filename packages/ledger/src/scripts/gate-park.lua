-- Puts an acknowledgment among those that wait for their provider. Should this note get lost, its job comes by
-- itself after a while.
-- KEYS: 1-3 as in includes/gate.lua, 4 the waiting acknowledgments of its publisher, 5 next attempts by time: it
--       is no longer a matter of time when the next one comes
-- ARGV: 1 account, 2 id, 3 its place: milliseconds since 1970, the least first, or '' for the end,
--       4 channel of a waiting gateway or '', 5 message for it
-- Clock: Redis'.
-- @include gate
local place = ARGV[3] == '' and clockMs() or ARGV[3]
redis.call('ZADD', KEYS[4], place, ARGV[2])
redis.call('ZREM', KEYS[5], ARGV[2])
redis.call('SADD', busyKey, ARGV[1])
if ARGV[4] ~= '' then
  redis.call('PUBLISH', ARGV[4], ARGV[5])
end
return 1
