-- A page of dead, queued or awaiting ids, newest first. It returns ids only, so that Redis isn't held up while a page is
-- built. It reads ARGV[11] members at most and then returns a place to go on from, even if the page isn't full.
-- A place is a time and an id. Ids of the same millisecond are ordered by id, so none is shown twice or left out while
-- others come and go. Dead letters of several kinds are merged by this order.
-- ARGV: 1 state, 2 publisher, 3 reason, 4 code, 5 since and 6 until in ms, '' for none, 7 most rows,
--       8 time and 9 id of the place to go on from, or '' and '', 10 prefix of entry keys, 11 most members to read
-- Clock: none. Writes nothing.
-- Returns {ids, time and id of the next place}; both are '' at the end.
-- @include redis/ledger
-- @include dead-letters/dead-index
local state, publisher, reason, code, since = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5]) or 0
local limit, mostSeen = tonumber(ARGV[7]), tonumber(ARGV[11])

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
  if ARGV[8] ~= '' then
    rank = rankAfter(key, ARGV[8], ARGV[9])
  end
  if ARGV[6] ~= '' then
    rank = math.max(rank, redis.call('ZCOUNT', key, ARGV[6], '+inf'))
  end
  return rank
end

local indexes = {}
if state ~= 'dead' then
  indexes = {state == 'queued' and queuedKey or awaitingKey}
elseif publisher == '' and reason == '' and code == '' then
  indexes = {deadKey}
else
  for _, kind in ipairs(deadKinds(publisher, reason, code)) do
    table.insert(indexes, deadKindKey(kind, code))
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

local ids, seen, lastTime, lastId = {}, 0, '', ''
local source, time, id = newestSource()
while source and #ids < limit and seen < mostSeen do
  -- An index of one kind holds one publisher's letters only. The other indexes are searched for the publisher.
  if state == 'dead' or publisher == '' or redis.call('HGET', ARGV[10] .. id, 'p') == publisher then
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
