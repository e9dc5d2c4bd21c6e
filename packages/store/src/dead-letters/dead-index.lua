-- Two indexes of the dead letters that change together: all letters, and the letters of one kind, which is a publisher
-- with a reason. Counting and paging a filter needs the kinds only, however many letters there are.
local deadKindsKey = deadKey .. '-kinds' -- set: publisher|reason that has dead letters now
local coveredKey = deadKey .. '-covered' -- string: the latest time of death that a bulk replay covers

local function deadKindKey(kind) -- zset: id by the time it died
  return deadKey .. ':' .. kind
end

local function indexDead(id, publisher, reason, diedAt)
  local kind = publisher .. '|' .. reason
  redis.call('ZADD', deadKey, diedAt, id)
  redis.call('ZADD', deadKindKey(kind), diedAt, id)
  redis.call('SADD', deadKindsKey, kind)
end

-- A letter dies later than those that a bulk replay covers, also if Redis' clock has been set back since. Otherwise it could
-- be put back and die over and over again.
local function addDead(id, publisher, reason, now)
  indexDead(id, publisher, reason, math.max(now, (tonumber(redis.call('GET', coveredKey)) or 0) + 1))
end

local function removeDead(id, publisher, reason)
  local kind = publisher .. '|' .. (reason or '')
  redis.call('ZREM', deadKey, id)
  redis.call('ZREM', deadKindKey(kind), id)
  if redis.call('EXISTS', deadKindKey(kind)) == 0 then
    redis.call('SREM', deadKindsKey, kind)
  end
end

-- The kinds that a filter covers, sorted; '' means any publisher or reason. Neither contains a `|`.
local function deadKinds(publisher, reason)
  local kinds = {}
  for _, kind in ipairs(redis.call('SMEMBERS', deadKindsKey)) do
    local ofPublisher, ofReason = string.match(kind, '^([^|]*)|(.*)$')
    if (publisher == '' or publisher == ofPublisher) and (reason == '' or reason == ofReason) then
      table.insert(kinds, kind)
    end
  end
  table.sort(kinds)
  return kinds
end
