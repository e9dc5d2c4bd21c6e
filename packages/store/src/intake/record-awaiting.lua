-- Records an injection whose ad must be acknowledged. The caller has made sure that the ledger doesn't know its id.
-- Needs redis/ledger.lua.
-- injection: publisher, session (its hash, or ''), now, due (when the sweep looks at it).
local function recordAwaiting(key, id, injection)
  local publisher, session = injection.publisher, injection.session
  if session == '' then
    redis.call('HSET', key, 's', 'awaiting', 'p', publisher, 'r', injection.now)
  else
    redis.call('HSET', key, 's', 'awaiting', 'p', publisher, 'r', injection.now, 'S', session)
  end
  redis.call('ZADD', awaitingKey, injection.due, id)
  moveCount(publisher, nil, 'awaiting')
  count('recorded', publisher, 'ok')
end
