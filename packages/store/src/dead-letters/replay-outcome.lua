-- What became of a letter that a bulk replay put back. Its entry names the replay's record in the field `R` until then.
-- `record` is that field, or false. `outcome` is delivered, refused, discarded or dead; a death has a reason.
local function countOutcome(key, record, outcome, reason)
  if not record then
    return
  end
  redis.call('HDEL', key, 'R')
  -- The record may have expired.
  if redis.call('EXISTS', record) == 1 then
    redis.call('HINCRBY', record, 'waiting', -1)
    redis.call('HINCRBY', record, outcome, 1)
    if outcome == 'dead' then
      redis.call('HINCRBY', record, 'dead|' .. reason, 1)
    end
  end
end
