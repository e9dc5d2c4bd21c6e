-- The rank in an index from which a walk goes on, oldest first. `id` and `time` are where it has come to.
-- If that entry has gone or moved up, those of the same time are read once more.
local function rankAfter(index, id, time)
  local rank = redis.call('ZSCORE', index, id) == time and redis.call('ZRANK', index, id)
  return rank and rank + 1 or redis.call('ZCOUNT', index, '-inf', '(' .. time)
end
