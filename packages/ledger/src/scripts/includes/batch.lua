-- Many ad responses in one script, each a step of its own. The first one's entry is KEYS[1], those of the others come
-- after the seven keys of books.lua.
local function entryKeyOf(at)
  return at == 1 and entryKey or KEYS[6 + at]
end

-- What is counted in this call, written once in the end: few publishers, many acknowledgments.
local sums = {[gaugesKey] = {}, [totalsKey] = {}}
add = function(key, field, by)
  sums[key][field] = (sums[key][field] or 0) + by
end

-- What a step that ran under `pcall` answered, or its error as a reply.
local function replyOf(isOk, reply)
  return (isOk or type(reply) == 'table') and reply or {err = reply}
end

-- Runs `step` for each of `items`; one that fails answers its own error and holds up no other.
local function eachOf(items, step)
  local replies = {}
  for at = 1, items do
    replies[at] = replyOf(pcall(step, at))
  end
  for key, fields in pairs(sums) do
    for field, by in pairs(fields) do
      redis.call('HINCRBY', key, field, by)
    end
  end
  return replies
end
