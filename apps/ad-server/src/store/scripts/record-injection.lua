-- Books one answered injection and counts it, at once.
-- KEYS[1] response hash, absent so far   KEYS[2] counts hash
-- ARGV[1] outcome (ok | rejected | no_fill)   ARGV[2] publisher
-- ARGV[3] product name and ARGV[4] ad id   ARGV[5] lifetime in ms   ARGV[6] advertiser   ARGV[7] landing URL
-- Product, ad, advertiser and URL are empty unless ok; they are kept, for an answer is judged by what was served.
-- Returns 1. Clock: Redis.
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('HSET', KEYS[1], 'outcome', ARGV[1], 'publisher', ARGV[2], 'product', ARGV[3], 'ad', ARGV[4],
  'advertiser', ARGV[6], 'landing_url', ARGV[7],
  'served_at_ms', string.format('%.0f', now_ms), 'posts', 0)
redis.call('PEXPIRE', KEYS[1], ARGV[5])
redis.call('HINCRBY', KEYS[2], 'injections:' .. ARGV[1], 1)
return 1
