-- Records the first acknowledgment of an ad response and counts it, at once; every later one is refused.
-- KEYS[1] response hash   KEYS[2] counts hash
-- ARGV[1] publisher   ARGV[2] id for the acknowledgment   ARGV[3] verdict (ok | no_ad_used)
-- ARGV[4] whether an ad that was used is marked as one: 1, 0, or empty for no_ad_used
-- Returns {code, ack id, verdict}; the last two are those of the first acknowledgment, else empty:
--   0 recorded   1 unknown response   2 other publisher   3 not acknowledgeable   4 already acknowledged
-- Invariant: ack_id is written once, and `acknowledgments:<verdict>` grows in the same step.
-- The lifetime of the response is left as it is. Every call for a known response adds to `posts`.
local known = redis.call('HMGET', KEYS[1], 'outcome', 'publisher', 'ack_id', 'verdict')
if not known[1] then
  return {1, '', ''}
end
redis.call('HINCRBY', KEYS[1], 'posts', 1)
if known[2] ~= ARGV[1] then
  return {2, '', ''}
end
if known[1] ~= 'ok' then
  return {3, '', ''}
end
if known[3] then
  return {4, known[3], known[4]}
end
redis.call('HSET', KEYS[1], 'ack_id', ARGV[2], 'verdict', ARGV[3])
redis.call('HINCRBY', KEYS[2], 'acknowledgments:' .. ARGV[3], 1)
if ARGV[4] ~= '' then
  redis.call('HSET', KEYS[1], 'disclosed', ARGV[4])
  redis.call('HINCRBY', KEYS[2], ARGV[4] == '1' and 'disclosures:true' or 'disclosures:false', 1)
end
return {0, ARGV[2], ARGV[3]}
