-- How many dead letters stand, by kind. Writes nothing.
-- Returns [publisher|reason, how many, publisher|reason, how many …]
-- @include books
-- @include dead-letters
local counts = {}
for _, kind in ipairs(deadKinds('', '')) do
  table.insert(counts, kind)
  table.insert(counts, redis.call('ZCARD', deadKindKey(kind)))
end
return counts
