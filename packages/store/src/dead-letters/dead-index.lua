-- Three indexes of the dead letters that change together: all letters, the letters of one kind, which is a publisher
-- with a reason, and the letters of one kind with one code of the provider's. Counting and paging a filter reads no letter
-- that the filter doesn't cover. A publisher, a reason and a code never contain a `|`. '' is no code.
local deadKindsKey = deadKey .. '-kinds' -- set: publisher|reason that has dead letters now
local coveredKey = deadKey .. '-covered' -- string: the latest time of death that a bulk replay or bulk discard covers

local function kindsOfCodeKey(code) -- set: publisher|reason that has dead letters with this code now
  return deadKey .. '-code:' .. code
end

local function deadKindKey(kind, code) -- zset: id by the time it died
  return deadKey .. ':' .. kind .. (code == '' and '' or '|' .. code)
end

local function addToCode(id, kind, code, time)
  if code ~= '' then
    redis.call('ZADD', deadKindKey(kind, code), time, id)
    redis.call('SADD', kindsOfCodeKey(code), kind)
  end
end

local function indexDead(id, publisher, reason, code, diedAt)
  local kind = publisher .. '|' .. reason
  redis.call('ZADD', deadKey, diedAt, id)
  redis.call('ZADD', deadKindKey(kind, ''), diedAt, id)
  redis.call('SADD', deadKindsKey, kind)
  addToCode(id, kind, code, diedAt)
end

-- A letter dies later than those that a bulk replay covers, also if Redis' clock has been set back since. Otherwise it could
-- be put back and die over and over again.
local function addDead(id, publisher, reason, code, now)
  indexDead(id, publisher, reason, code, math.max(now, (tonumber(redis.call('GET', coveredKey)) or 0) + 1))
end

local function removeFrom(id, kind, code, kindsKey)
  redis.call('ZREM', deadKindKey(kind, code), id)
  if redis.call('EXISTS', deadKindKey(kind, code)) == 0 then
    redis.call('SREM', kindsKey, kind)
  end
end

-- `code` is false if the entry has none.
local function removeDead(id, publisher, reason, code)
  local kind = publisher .. '|' .. (reason or '')
  redis.call('ZREM', deadKey, id)
  removeFrom(id, kind, '', deadKindsKey)
  if code and code ~= '' then
    removeFrom(id, kind, code, kindsOfCodeKey(code))
  end
end

-- The kinds that a filter covers, sorted; '' means any publisher, reason or code.
local function deadKinds(publisher, reason, code)
  local kinds = {}
  for _, kind in ipairs(redis.call('SMEMBERS', code == '' and deadKindsKey or kindsOfCodeKey(code))) do
    local ofPublisher, ofReason = string.match(kind, '^([^|]*)|(.*)$')
    if (publisher == '' or publisher == ofPublisher) and (reason == '' or reason == ofReason) then
      table.insert(kinds, kind)
    end
  end
  table.sort(kinds)
  return kinds
end
