-- The keys of scripts on bulk replays and bulk discards, and the beginning and end of a step. The keys follow the seven of redis/ledger.lua.
local auditKey = KEYS[8]   -- stream: who did what
local bulkKey = KEYS[9]    -- hash: one bulk replay, or one bulk discard
local bulksKey = KEYS[10]  -- zset: ids of all bulk replays, or of all bulk discards, by their creation
local runningKey = KEYS[11] -- set: ids of those that run

-- Ends it, and keeps its record for the retention.
local function endBulk(id, state, now, retentionMs)
  redis.call('HSET', bulkKey, 'state', state, 'updated', now, 'ended', now)
  redis.call('PEXPIRE', bulkKey, retentionMs)
  redis.call('SREM', runningKey, id)
end

-- The record with these fields; nil if the change doesn't run.
local function readRunning(id, more)
  local names = {'state', 'publisher', 'reason', 'code', 'unknown', 'since', 'until', 'created', 'last', 'turn', unpack(more)}
  local stored = redis.call('HMGET', bulkKey, unpack(names))
  local bulk = {}
  for at, name in ipairs(names) do
    bulk[name] = stored[at] or nil
  end
  if bulk.state ~= 'running' then
    redis.call('SREM', runningKey, id)
    return nil, bulk.state or ''
  end
  -- Records of older versions don't have these.
  bulk.last, bulk.code, bulk.unknown = bulk.last or bulk.created, bulk.code or '', bulk.unknown or ''
  return bulk
end
