-- Parks an acknowledgment until its circuit breaker lets it go. If this entry is lost, its job comes back on its own
-- when its delay in the queue ends.
-- KEYS: 1-3 as in circuit/circuit.lua, 4 the parked acknowledgments of its publisher, 5 next attempts by time: the next
--       attempt doesn't depend on time any more
-- ARGV: 1 id of the account, or '' if the publisher is gone and has none, 2 id, 3 its place: milliseconds since 1970, the
--       least first, or '' for the end, 4 channel of a waiting gateway or '', 5 message for it
-- Clock: Redis'.
-- @include redis/when-full
-- @include circuit/circuit
local place = ARGV[3] == '' and clockMs() or ARGV[3]
redis.call('ZADD', KEYS[4], place, ARGV[2])
redis.call('ZREM', KEYS[5], ARGV[2])
if ARGV[1] ~= '' then
  redis.call('SADD', busyKey, ARGV[1])
  noteAsked(ARGV[1], clockMs())
end
if ARGV[4] ~= '' then
  redis.pcall('PUBLISH', ARGV[4], ARGV[5])
end
return 1
