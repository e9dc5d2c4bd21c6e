-- A bulk replay or bulk discard covers dead letters of some kinds that died in [since, until) and not after `last`.
-- `filter` is {publisher, reason, code, unknown, since, until, last}; '' means none.

-- The times of death that a filter covers, as bounds of a zset.
local function deathBounds(filter)
  local last = tostring(filter.last)
  if filter['until'] ~= '' and tonumber(filter['until']) <= tonumber(filter.last) then
    last = '(' .. filter['until']
  end
  return filter.since == '' and '-inf' or filter.since, last
end

-- How many dead letters a filter covers now.
local function countDead(filter)
  local first, last = deathBounds(filter)
  local matched = 0
  for _, kind in ipairs(deadKinds(filter.publisher, filter.reason, filter.code, filter.unknown)) do
    matched = matched + redis.call('ZCOUNT', deadKindKey(kind, filter.code, filter.unknown), first, last)
  end
  return matched
end

-- The covered kinds of each publisher, and the publishers in order, from the one whose turn it is.
local function publishersOf(bulk)
  local before, from, kindsOf = {}, {}, {}
  for _, kind in ipairs(deadKinds(bulk.publisher, bulk.reason, bulk.code, bulk.unknown)) do
    local publisher = string.match(kind, '^[^|]*')
    if not kindsOf[publisher] then
      kindsOf[publisher] = {}
      table.insert(publisher <= (bulk.turn or '') and before or from, publisher)
    end
    table.insert(kindsOf[publisher], kind)
  end
  for _, publisher in ipairs(before) do
    table.insert(from, publisher)
  end
  return from, kindsOf
end
