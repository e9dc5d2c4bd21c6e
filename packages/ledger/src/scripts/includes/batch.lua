-- Many ad responses in one script: each its own step, and what all of them add to the same keys once at the end.
-- The first one's entry is KEYS[1], those of the others come after the seven keys of books.lua.
local function entryKeyOf(at)
  return at == 1 and entryKey or KEYS[6 + at]
end

-- Runs `step` for each of `items`; one that fails answers its own error and holds up no other.
local function eachOf(items, step)
  local replies = {}
  for at = 1, items do
    local ok, reply = pcall(step, at)
    replies[at] = (ok or type(reply) == 'table') and reply or {err = reply}
  end
  return replies
end

local added, unqueued = {[gaugesKey] = {}, [totalsKey] = {}}, {}

-- Like `move` and `count`, but at the end.
local function addLater(key, field, by)
  added[key][field] = (added[key][field] or 0) + by
end
local function countLater(name, publisher, label)
  addLater(totalsKey, name .. '|' .. publisher .. '|' .. (label or ''), 1)
end
local function moveLater(publisher, from, to)
  addLater(gaugesKey, publisher .. '|' .. from, -1)
  addLater(gaugesKey, publisher .. '|' .. to, 1)
end
local function unqueueLater(id)
  unqueued[#unqueued + 1] = id
end

local function finishBatch()
  for key, fields in pairs(added) do
    for field, by in pairs(fields) do
      redis.call('HINCRBY', key, field, by)
    end
  end
  if #unqueued > 0 then
    redis.call('ZREM', queuedKey, unpack(unqueued))
  end
end
