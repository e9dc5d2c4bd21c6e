-- Moves a bounded batch of overdue entries. An awaiting one past its deadline becomes missed. A dead letter past its
-- retention becomes expired. Each entry moves once, however many workers sweep.
-- An awaiting entry with a turn is never missed. It is claimed for the caller, who settles the turn (journal/settle.lua), and
-- comes up again if the caller doesn't. While Redis hasn't answered for long enough, it only comes up again: its proxy must
-- have had the time to renew a lease.
-- KEYS: 8 the heartbeat
-- ARGV: 1 event (miss, expire), 2 most ids, 3 retention of entries in ms, 4 prefix of entry keys,
--       5 retention of dead letters in ms (expire), or how long Redis must have answered without a break in ms (miss)
-- Clock: Redis'. TTL: an entry that ends here lives for the retention.
-- Returns {how many ids were checked, how many of them have a turn, ids of the turns that are claimed}. If as many were checked as asked for, there may be more.
-- @include redis/when-full
-- @include redis/ledger
-- @include redis/stored-bytes
-- @include dead-letters/dead-index
-- @include journal/drop-turn
-- @include journal/turn
-- @include heartbeat/steady
local event = ARGV[1]
local now = clockMs()
local from, to, index, due = 'awaiting', 'missed', awaitingKey, now
if event == 'expire' then
  from, to, index, due = 'dead', 'expired', deadKey, now - ARGV[5]
end
local isSteady = event == 'miss' and (ARGV[5] == '0' or now - steadySinceMs(KEYS[8], now) >= tonumber(ARGV[5]))
local claimed, withTurn = {}, 0

local function claim(id)
  withTurn = withTurn + 1
  redis.call('ZADD', awaitingKey, now + CLAIM_MS, id)
  if isSteady then
    claimed[#claimed + 1] = id
  end
end

local function moveOn(id)
  local key = ARGV[4] .. id
  local state, publisher, reason, code, stored = unpack(redis.call('HMGET', key, 's', 'p', 'x', 'y', 'b'))
  redis.call('ZREM', index, id)
  if state ~= from then
    return
  end
  move(key, publisher, from, to)
  count(to, publisher)
  redis.call('HSET', key, 'e', now)
  redis.call('PEXPIRE', key, ARGV[3])
  if event == 'expire' then
    releaseBytes(stored, publisher, from)
    removeDead(id, publisher, reason, code)
    redis.call('ZADD', outboxKey, now, 'remove:' .. id)
  end
end

local ids = redis.call('ZRANGEBYSCORE', index, '-inf', due, 'LIMIT', 0, ARGV[2])
for _, id in ipairs(ids) do
  if event == 'miss' and redis.call('EXISTS', turnKeyOf(id)) == 1 then
    claim(id)
  else
    moveOn(id)
  end
end
return {#ids, withTurn, unpack(claimed)}
