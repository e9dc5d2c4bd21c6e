-- Adds dead letters to the indexes of the provider's codes and of unknown ids (dead-letters/dead-index.lua), oldest first. Letters
-- that died under an older version are not in them.
-- ARGV: 1 the last id of the step before and 2 its time of death, or '' and '', 3 most ids, 4 prefix of entry keys
-- Clock: none. TTL: none.
-- Returns {last id, its time of death}, or {'', ''} at the end.
-- @include redis/when-full
-- @include redis/ledger
-- @include dead-letters/dead-index
-- @include maintenance/rank-after
local first = ARGV[1] ~= '' and rankAfter(deadKey, ARGV[1], ARGV[2]) or 0
local letters = redis.call('ZRANGE', deadKey, first, first + ARGV[3] - 1, 'WITHSCORES')
for at = 1, #letters, 2 do
  local id, key = letters[at], ARGV[4] .. letters[at]
  local state, publisher, reason, code = unpack(redis.call('HMGET', key, 's', 'p', 'x', 'y'))
  if state == 'dead' and publisher and reason then
    indexDead(key, id, publisher, reason, code or '', letters[at + 1])
  end
end
return {letters[#letters - 1] or '', letters[#letters] or ''}
