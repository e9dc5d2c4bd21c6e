-- Gives the next step of a turn, or its retry, a number and a lease, and the turn's prompt. The wait is over.
-- KEYS: 8 the key of the pointer
-- ARGV: 1 the step's token, 2 most steps of a turn, 3 `1` for a retry: the turn must wait for one, and no other step may run
-- Clock: Redis'. TTL: none.
-- Returns {code of JOINED_CODES in redis/scripts.ts; id, number of the step, publisher, prompt}. The same token again gets
-- the same number, and changes nothing.
-- @include redis/when-full
-- @include redis/ledger
-- @include journal/drop-turn
-- @include journal/turn
local token = ARGV[1]
local id = redis.call('GET', KEYS[8])
if not id then
  return {'2'}
end
local turnKey = turnKeyOf(id)
local publisher, last, waitsForRetry, known = unpack(redis.call('HMGET', turnKey, 'p', 'n', 'R', 'k' .. token))
local prompt = redis.call('GET', promptKeyOf(id))
if publisher and ARGV[3] == '1' and (not waitsForRetry or latestLease(readTurn(id), known) > clockMs()) then
  return {'2'}
end
if not publisher or not prompt or (not known and tonumber(last) >= tonumber(ARGV[2])) then
  return {'0'}
end
local step = known or string.format('%d', last + 1)
if not known then
  redis.call('HSET', turnKey, 'k' .. token, step)
  joinStep(id, step, clockMs())
end
return {'1', id, step, publisher, prompt}
