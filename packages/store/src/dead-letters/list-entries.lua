-- A page of dead, queued or awaiting ids, newest first. It returns ids only, so that Redis isn't held up while a page is
-- built. It reads ARGV[12] members at most and then returns a place to go on from, even if the page isn't full.
-- A place is a time and an id. Ids of the same millisecond are ordered by id, so none is shown twice or left out while
-- others come and go. Dead letters of several kinds are merged by this order.
-- ARGV: 1 state, 2 publisher, 3 reason, 4 code, 5 `1` for unknown ids only, 6 since and 7 until in ms, '' for none,
--       8 most rows, 9 time and 10 id of the place to go on from, or '' and '', 11 prefix of entry keys, 12 most members to read
-- Clock: none. Writes nothing.
-- Returns {ids, time and id of the next place}; both are '' at the end.
-- @include redis/ledger
-- @include dead-letters/dead-index
local state, publisher, reason, code, unknown = unpack(ARGV, 1, 5)
local since, limit, mostSeen = tonumber(ARGV[6]) or 0, tonumber(ARGV[8]), tonumber(ARGV[12])

-- Rank, newest first, of the first member after a place. Ids of the same time are in descending order.
local function rankAfter(key, time, id)
  local low = redis.call('ZCOUNT', key, '(' .. time, '+inf')
  local high = redis.call('ZCOUNT', key, time, '+inf')
  while low < high do
    local middle = math.floor((low + high) / 2)
    if redis.call('ZREVRANGE', key, middle, middle)[1] >= id then
      low = middle + 1
    else
      high = middle
    end
  end
  return low
end

local function firstRank(key)
  local rank = 0
  if ARGV[9] ~= '' then
    rank = rankAfter(key, ARGV[9], ARGV[10])
  end
  if ARGV[7] ~= '' then
    rank = math.max(rank, redis.call('ZCOUNT', key, ARGV[7], '+inf'))
  end
  return rank
end

local indexes = {}
if state ~= 'dead' then
  indexes = {state == 'queued' and queuedKey or awaitingKey}
elseif publisher == '' and reason == '' and code == '' and unknown == '' then
  indexes = {deadKey}
else
  for _, kind in ipairs(deadKinds(publisher, reason, code, unknown)) do
    table.insert(indexes, deadKindKey(kind, code, unknown))
  end
end

-- One source for each index: a few members that were read ahead. The first of them is the newest one left.
local chunk = math.max(2, math.ceil(limit / math.max(#indexes, 1)) + 1)
local sources = {}
local function refill(source)
  source.ahead = redis.call('ZREVRANGE', source.key, source.rank, source.rank + chunk - 1, 'WITHSCORES')
  source.rank = source.rank + chunk
  source.at = 1
end
for _, key in ipairs(indexes) do
  local source = {key = key, rank = firstRank(key)}
  refill(source)
  table.insert(sources, source)
end

local function newestSource()
  local newest, newestTime, newestId
  for _, source in ipairs(sources) do
    local id, time = source.ahead[source.at], tonumber(source.ahead[source.at + 1] or '')
    if id and time >= since
      and (not newest or time > newestTime or (time == newestTime and id > newestId)) then
      newest, newestTime, newestId = source, time, id
    end
  end
  return newest, newestTime, newestId
end

-- The indexes of dead letters hold only what the filter covers. The others are searched.
local isSearched = state ~= 'dead' and (publisher ~= '' or unknown ~= '')
local function isCovered(id)
  local owner, recorded = unpack(redis.call('HMGET', ARGV[11] .. id, 'p', 'r'))
  return (publisher == '' or owner == publisher) and (unknown == '' or not recorded)
end

local ids, seen, lastTime, lastId = {}, 0, '', ''
local source, time, id = newestSource()
while source and #ids < limit and seen < mostSeen do
  if not isSearched or isCovered(id) then
    table.insert(ids, id)
  end
  seen, lastTime, lastId = seen + 1, string.format('%.0f', time), id
  source.at = source.at + 2
  if source.at > #source.ahead and #source.ahead > 0 then
    refill(source)
  end
  source, time, id = newestSource()
end
if not source then
  return {ids, '', ''}
end
return {ids, lastTime, lastId}
