-- A bulk replay covers dead letters of some kinds that died in [since, until) and not after `last`.
-- `filter` is {publisher, reason, since, until, last}; '' means none.

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
  for _, kind in ipairs(deadKinds(filter.publisher, filter.reason)) do
    matched = matched + redis.call('ZCOUNT', deadKindKey(kind), first, last)
  end
  return matched
end
