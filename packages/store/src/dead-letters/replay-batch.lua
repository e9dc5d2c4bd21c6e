-- One step of a bulk replay: moves as many dead letters to queued as the rate allows now. Any worker may run it at any
-- time (docs/adr/0012). All progress is in Redis, so a killed worker leaves nothing behind.
-- 1. The rate is a token bucket by Redis' clock that starts empty. Since its creation a replay has put back
--    rate × elapsed at most, whatever the number of workers; a burst is one second's worth.
-- 2. It covers letters that were dead at its creation. A letter that dies again dies later (dead-letters/dead-index.lua),
--    so it is put back once.
-- 3. Publishers take turns, and the next step goes on with the next publisher.
-- ARGV: 1 replay's id, 2 most letters, 3 prefix of entry keys, 4 wait in ms until other workers may lease the outbox
--       tasks, 5 retention in ms
-- Clock: Redis'. TTL: the record lives for the retention once the replay has completed.
-- Returns {state or '', outbox tasks of the letters that were moved, now in µs}.
-- @include redis/when-full
-- @include redis/ledger
-- @include dead-letters/replay-keys
-- @include dead-letters/dead-index
-- @include dead-letters/replay-dead
-- @include dead-letters/replays
local nowUs = clockUs()
local now = math.floor(nowUs / 1000)
local names = {'state', 'publisher', 'reason', 'since', 'until', 'created', 'last', 'rate', 'tokens', 'refilled', 'turn'}
local stored = redis.call('HMGET', replayKey, unpack(names))
local replay = {}
for at, name in ipairs(names) do
  replay[name] = stored[at]
end
if replay.state ~= 'running' then
  redis.call('SREM', runningKey, ARGV[1])
  return {replay.state or '', {}, nowUs}
end
-- Records of older versions don't have it.
replay.last = replay.last or replay.created

local rate = tonumber(replay.rate)
local elapsedUs = math.max(nowUs - tonumber(replay.refilled), 0)
local tokens = math.min(tonumber(replay.tokens) + elapsedUs * rate / 1000000, math.max(rate, 1))
local left = math.min(math.floor(tokens), tonumber(ARGV[2]))

-- The covered kinds of each publisher. Publishers are in order, from the one whose turn it is.
local first, last = deathBounds(replay)
local before, from, kindsOf = {}, {}, {}
for _, kind in ipairs(deadKinds(replay.publisher, replay.reason)) do
  local publisher = string.match(kind, '^[^|]*')
  if not kindsOf[publisher] then
    kindsOf[publisher] = {}
    table.insert(publisher <= (replay.turn or '') and before or from, publisher)
  end
  table.insert(kindsOf[publisher], kind)
end
for _, publisher in ipairs(before) do
  table.insert(from, publisher)
end

local moved = {}
-- Moves up to `share` letters of one publisher, oldest first. Returns how many.
local function replaySome(publisher, share)
  local done = 0
  for _, kind in ipairs(kindsOf[publisher]) do
    local key = deadKindKey(kind)
    local ids = redis.call('ZRANGEBYSCORE', key, first, last, 'LIMIT', 0, share - done)
    for _, id in ipairs(ids) do
      local entry, reason = ARGV[3] .. id, string.sub(kind, #publisher + 2)
      if redis.call('HGET', entry, 's') == 'dead' then
        table.insert(moved, replayDead(entry, id, publisher, reason, now, now + ARGV[4]))
      else
        removeDead(id, publisher, reason)
      end
    end
    done = done + #ids
    if done == share then
      break
    end
  end
  return done
end

local turn = replay.turn or ''
while left > 0 and #from > 0 do
  local share = math.ceil(left / #from)
  local more = {}
  for _, publisher in ipairs(from) do
    if left > 0 then
      local some = math.min(share, left)
      local done = replaySome(publisher, some)
      left, turn = left - done, publisher
      if done == some then
        table.insert(more, publisher)
      end
    end
  end
  from = more
end

redis.call('HINCRBY', replayKey, 'replayed', #moved)
redis.call('HSET', replayKey, 'tokens', string.format('%.6f', tokens - #moved),
  'refilled', string.format('%.0f', nowUs), 'turn', turn)
if #moved > 0 then
  redis.call('HSET', replayKey, 'updated', now)
end
if countDead(replay) > 0 then
  return {'running', moved, nowUs}
end
redis.call('HSET', replayKey, 'state', 'completed', 'updated', now, 'ended', now)
redis.call('PEXPIRE', replayKey, ARGV[5])
redis.call('SREM', runningKey, ARGV[1])
return {'completed', moved, nowUs}
