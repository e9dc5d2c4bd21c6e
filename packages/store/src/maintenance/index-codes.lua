-- Adds dead letters to the index of the provider's codes (dead-letters/dead-index.lua), oldest first. Letters that died under an
-- older version are not in it.
-- ARGV: 1 the last id of the step before and 2 its time of death, or '' and '', 3 most ids, 4 prefix of entry keys
-- Clock: none. TTL: none.
-- Returns {last id, its time of death}, or {'', ''} at the end.
-- @include redis/when-full
-- @include redis/ledger
-- @include dead-letters/dead-index
local first = 0
if ARGV[1] ~= '' then
  local rank = redis.call('ZRANK', deadKey, ARGV[1])
  -- If the letter has gone, those of the same time are read once more.
  first = rank and rank + 1 or redis.call('ZCOUNT', deadKey, '-inf', '(' .. ARGV[2])
end
local letters = redis.call('ZRANGE', deadKey, first, first + ARGV[3] - 1, 'WITHSCORES')
for at = 1, #letters, 2 do
  local publisher, reason, code = unpack(redis.call('HMGET', ARGV[4] .. letters[at], 'p', 'x', 'y'))
  if publisher and reason and code then
    addToCode(letters[at], publisher .. '|' .. reason, code, letters[at + 1])
  end
end
return {letters[#letters - 1] or '', letters[#letters] or ''}
