-- How many bytes the acknowledgments of all publishers take together, as the quotas count.
-- Clock: none. Writes nothing.
-- Returns the bytes as a text.
-- @include redis/ledger
-- @include redis/stored-bytes
local sum = 0
for _, key in ipairs(storedKeys()) do
  sum = sum + (redis.call('HGET', key, 'total') or 0)
end
return string.format('%.0f', sum)
