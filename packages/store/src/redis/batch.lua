-- Many ad responses in one script. Each has its own step. KEYS[1] is the first one's entry. KEYS[8] and the next ones
-- are the entries of the others.
local function entryKeyOf(at)
  return at == 1 and entryKey or KEYS[6 + at]
end

-- What this call counts. It is written once, at the end: there are few publishers and many acknowledgments.
local sums = {}
add = function(key, field, by)
  local fields = sums[key] or {}
  sums[key] = fields
  fields[field] = (fields[field] or 0) + by
end

-- The reply of a step that ran under `pcall`, or its error as a reply.
local function replyOf(isOk, reply)
  return (isOk or type(reply) == 'table') and reply or {err = reply}
end

-- Runs `step` for each of `items`. A step that fails replies with its error and disturbs no other.
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
