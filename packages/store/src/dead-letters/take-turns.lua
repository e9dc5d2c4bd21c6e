-- How bulk replays and bulk discards go through the letters that they cover. Needs redis/ledger.lua, bulk-record.lua,
-- dead-index.lua and covered.lua.

-- Calls `change` for one indexed letter, and takes it out of the index if it doesn't belong there.
local function changeOne(bulk, entry, id, publisher, reason, change)
  local state, code = unpack(redis.call('HMGET', entry, 's', 'y'))
  code = code or ''
  if state ~= 'dead' then
    removeDead(id, publisher, reason, bulk.code)
  elseif (bulk.code ~= '' and bulk.code ~= code) or (bulk.unknown == '1' and not isUnknown(entry)) then
    removeFrom(id, publisher .. '|' .. reason, bulk.code, bulk.unknown)
  else
    change(entry, id, publisher, reason, code)
  end
end

-- Calls `change(entry's key, id, publisher, reason, code)` for up to `left` covered letters, oldest first. Publishers take
-- turns, and the next step goes on with the next publisher.
local function takeTurns(bulk, left, entryPrefix, change)
  local first, last = deathBounds(bulk)
  local from, kindsOf = publishersOf(bulk)
  local turn = bulk.turn or ''

  local function changeSome(publisher, share)
    local done = 0
    for _, kind in ipairs(kindsOf[publisher]) do
      local key = deadKindKey(kind, bulk.code, bulk.unknown)
      local ids = redis.call('ZRANGEBYSCORE', key, first, last, 'LIMIT', 0, share - done)
      for _, id in ipairs(ids) do
        changeOne(bulk, entryPrefix .. id, id, publisher, string.sub(kind, #publisher + 2), change)
      end
      done = done + #ids
      if done == share then
        break
      end
    end
    return done
  end

  while left > 0 and #from > 0 do
    local share = math.ceil(left / #from)
    local more = {}
    for _, publisher in ipairs(from) do
      if left > 0 then
        local some = math.min(share, left)
        local done = changeSome(publisher, some)
        left, turn = left - done, publisher
        if done == some then
          table.insert(more, publisher)
        end
      end
    end
    from = more
  end
  redis.call('HSET', bulkKey, 'turn', turn)
end
