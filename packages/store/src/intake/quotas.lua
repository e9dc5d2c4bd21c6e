-- Whether there is room for an acknowledgment: within its publisher's quotas, and in Redis (docs/adr/0046). Needs
-- redis/stored-bytes.lua and redis/batch.lua. A limit is a text; '' is no limit.

-- What the counters had before this call, by their field. What this call adds is in `sums`.
local usedBefore = {}
local function usedBytes(field)
  local keys = storedKeys()
  if not usedBefore[field] then
    local used = 0
    for _, key in ipairs(keys) do
      used = used + (redis.call('HGET', key, field) or 0)
    end
    usedBefore[field] = used
  end
  local added = sums[keys[1]]
  return usedBefore[field] + (added and added[field] or 0)
end

-- One acknowledgment may exceed a quota of which nothing is used: otherwise one that is larger than the quota could never be
-- accepted.
local function refusalOf(publisher, quota, limit, bytes)
  if limit == '' then
    return
  end
  local used = usedBytes(publisher .. '|' .. quota)
  if used > 0 and used + bytes > tonumber(limit) then
    return '10,' .. quota .. ',' .. limit .. ',' .. string.format('%.0f', used)
  end
end

-- Returns the refusal as a reply of intake/accept.lua, or nil. `room`: how many bytes all may take together.
local function findRefusal(publisher, isUnknown, bytes, limits, room)
  local refusal
  if isUnknown then
    refusal = refusalOf(publisher, 'unknown_bytes', limits.unknown, bytes)
  else
    refusal = refusalOf(publisher, 'queued_bytes', limits.queued, bytes)
      -- It doesn't become dead now, so its own bytes don't count.
      or refusalOf(publisher, 'dead_bytes', limits.dead, 0)
  end
  if not refusal and room ~= '' and usedBytes('total') + bytes > tonumber(room) then
    return '11'
  end
  return refusal
end
