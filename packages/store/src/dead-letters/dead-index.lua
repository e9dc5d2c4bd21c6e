-- The indexes of the dead letters, which change together. A kind is a publisher with a reason. There are indexes of all
-- letters, of the letters of one kind, and of the letters of one kind with one code of the provider's. The last two exist
-- once more for the letters with unknown ids: the ledger has no injection of those. Counting and paging a filter reads no letter
-- that the filter doesn't cover. A publisher, a reason and a code never contain a `|`. '' is no code. `unknown` is '1' for the
-- indexes of unknown ids, else ''.

local function coveredKeyOf(index) -- string: the latest time in the index that was counted for a bulk replay or bulk discard
  return index .. '-covered'
end

-- What dies or is adopted now gets a later time than what was counted, also if Redis' clock has been set back since. So no bulk
-- change covers what nobody has counted, and none puts a letter back that dies over and over again.
local function afterCounted(index, time)
  return math.max(time, (tonumber(redis.call('GET', coveredKeyOf(index))) or 0) + 1)
end

local function familyOf(unknown)
  return deadKey .. (unknown == '1' and '-unknown' or '')
end

local function kindsKeyOf(code, unknown) -- set: publisher|reason that has such letters now
  return familyOf(unknown) .. (code == '' and '-kinds' or '-code:' .. code)
end

local function deadKindKey(kind, code, unknown) -- zset: id by the time it died
  return familyOf(unknown) .. ':' .. kind .. (code == '' and '' or '|' .. code)
end

local function isUnknown(key)
  return redis.call('HEXISTS', key, 'r') == 0
end

local function addToKind(id, kind, code, unknown, time)
  redis.call('ZADD', deadKindKey(kind, code, unknown), time, id)
  redis.call('SADD', kindsKeyOf(code, unknown), kind)
end

-- `key` is that of the entry.
local function indexDead(key, id, publisher, reason, code, diedAt)
  local kind = publisher .. '|' .. reason
  redis.call('ZADD', deadKey, diedAt, id)
  for _, unknown in ipairs(isUnknown(key) and {'', '1'} or {''}) do
    addToKind(id, kind, '', unknown, diedAt)
    if code ~= '' then
      addToKind(id, kind, code, unknown, diedAt)
    end
  end
end

local function addDead(key, id, publisher, reason, code, now)
  indexDead(key, id, publisher, reason, code, afterCounted(deadKey, now))
end

local function removeFrom(id, kind, code, unknown)
  local key = deadKindKey(kind, code, unknown)
  if redis.call('ZREM', key, id) == 1 and redis.call('EXISTS', key) == 0 then
    redis.call('SREM', kindsKeyOf(code, unknown), kind)
  end
end

-- `code` is false if the entry has none.
local function removeDead(id, publisher, reason, code)
  local kind = publisher .. '|' .. (reason or '')
  redis.call('ZREM', deadKey, id)
  for _, unknown in ipairs({'', '1'}) do
    removeFrom(id, kind, '', unknown)
    if code and code ~= '' then
      removeFrom(id, kind, code, unknown)
    end
  end
end

-- The kinds that a filter covers, sorted; '' means any publisher, reason or code.
local function deadKinds(publisher, reason, code, unknown)
  local kinds = {}
  for _, kind in ipairs(redis.call('SMEMBERS', kindsKeyOf(code, unknown))) do
    local ofPublisher, ofReason = string.match(kind, '^([^|]*)|(.*)$')
    if (publisher == '' or publisher == ofPublisher) and (reason == '' or reason == ofReason) then
      table.insert(kinds, kind)
    end
  end
  table.sort(kinds)
  return kinds
end
