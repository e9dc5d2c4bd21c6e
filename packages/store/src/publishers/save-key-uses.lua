-- Notes that callers' keys were used now, and forgets keys that nobody has used for long.
-- KEYS: 1 uses of keys (zset: the beginning of a key's digest, by the time of its latest use)
-- ARGV: 1 ms after which an unused key is forgotten, 2… the keys that were used
-- Clock: Redis'. TTL: none; keys are forgotten here.
-- Returns 0.
-- @include redis/when-full
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for at = 2, #ARGV do
  redis.call('ZADD', KEYS[1], now, ARGV[at])
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - tonumber(ARGV[1]))
return 0
