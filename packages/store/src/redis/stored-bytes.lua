-- How much memory of Redis each publisher's queued acknowledgments and dead letters take (docs/adr/0046).
-- 1. An entry's field `b` says with how many bytes it counts, whether its id was known when it was acknowledged, and in
--    which recount: `7k3072`, or `7u3072` for an unknown id. While the entry is queued or dead, the counter of this recount
--    contains it. In any other state the field means nothing.
-- 2. A script that moves an entry into, out of or between these two states calls one of the functions below, in the same
--    step.
-- 3. A recount begins with empty counters and moves one entry after the other over (maintenance/recount.lua). Meanwhile the
--    use is the sum of both. What remains in the older counters at the end was wrong, and is dropped. Versions before
--    this one leave such remains.
local recountKey = gaugesKey .. ':recount' -- hash: number, running (1 or 0), and how far it is
-- Besides its job's data, an acknowledgment takes about this much: entry, job and places in indexes (docs/sizing.md).
local OVERHEAD_BYTES = 1024

local function storedKeyOf(number) -- hash: publisher|quota to bytes; `total` to their sum
  return gaugesKey .. ':stored:' .. number
end

local recount, isRecounting
local function readRecount()
  if not recount then
    local number, running = unpack(redis.call('HMGET', recountKey, 'number', 'running'))
    recount, isRecounting = number or '0', running == '1'
  end
  return recount
end

-- The counters that contain something, as their keys. The present one is the first.
local function storedKeys()
  local keys = {storedKeyOf(readRecount())}
  if isRecounting then
    keys[2] = storedKeyOf(string.format('%d', recount - 1))
  end
  return keys
end

-- The quota against which an entry counts.
local function quotaOf(kind, state)
  return kind == 'u' and 'unknown_bytes' or state .. '_bytes'
end

local function addBytes(key, publisher, quota, bytes)
  add(key, publisher .. '|' .. quota, bytes)
  add(key, 'total', bytes)
end

-- Counts an entry that comes to a state. Returns its field `b`.
local function storeBytes(publisher, state, kind, bytes)
  local number = readRecount()
  addBytes(storedKeyOf(number), publisher, quotaOf(kind, state), bytes)
  return number .. kind .. string.format('%d', bytes)
end

-- An entry leaves a state. `stored` is its field `b`, or false. Returns its kind and bytes, or nothing if it didn't count.
local function releaseBytes(stored, publisher, state)
  local number, kind, bytes = string.match(stored or '', '^(%d+)([ku])(%d+)$')
  if not number then
    return
  end
  bytes = tonumber(bytes)
  local isOlder = number ~= readRecount()
  if not isOlder or (isRecounting and number + 1 == tonumber(recount)) then
    addBytes(storedKeyOf(number), publisher, quotaOf(kind, state), -bytes)
  end
  return kind, bytes
end

-- An entry moves between queued and dead, or to another publisher.
local function moveBytes(key, stored, from, fromState, to, toState)
  local kind, bytes = releaseBytes(stored, from, fromState)
  if kind then
    local moved = storeBytes(to, toState, kind, bytes)
    if moved ~= stored then
      redis.call('HSET', key, 'b', moved)
    end
  end
end
