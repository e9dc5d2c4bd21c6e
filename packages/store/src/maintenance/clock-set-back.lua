-- Mends times that lie too far ahead because Redis' clock was set back after they were written. Without this, what waits
-- for such a time would wait for as long as the step was. Each index is read from its latest time down to the first one
-- that this clock can have written, so there is nothing to read on any other day.
-- 1. An ad response awaits its acknowledgment no longer than it would if it were recorded now. One with a turn waits for the
--    turn's leases and its wait, and these are no longer than if they began now.
-- 2. A queued acknowledgment counts as queued now. It gets its whole age, so that it doesn't die too early.
-- 3. A next attempt that was booked after now is due now: nobody knows how much of its wait has passed.
-- 4. An outbox task that is due later than any script sets it is due now. Tasks may be done twice.
-- Not mended: times of death. They order the dead letters for bulk replays (dead-letters/dead-index.lua), so a dead letter
-- expires later by as much as the step was.
-- ARGV: 1 most members of each index, 2 prefix of entry keys, 3 longest time ahead of an outbox task in ms
-- Clock: Redis'. TTL: none.
-- Returns how many times were mended.
-- @include redis/when-full
-- @include redis/ledger
-- @include journal/drop-turn
-- @include journal/turn
local most, entryPrefix, aheadMs = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local now = clockMs()
local mended = 0

-- Calls `timeFor` for the latest members of an index. It returns the member's new time, or nil if the old one can be right.
local function mend(key, timeFor)
  local members = redis.call('ZREVRANGE', key, 0, most - 1, 'WITHSCORES')
  for at = 1, #members, 2 do
    local member, time = members[at], tonumber(members[at + 1])
    local new = time > now and timeFor(member, time)
    if not new then
      return
    end
    redis.call('ZADD', key, new, member)
    mended = mended + 1
  end
end

mend(awaitingKey, function(id, deadline)
  local turn = readTurn(id)
  if turn then
    return mendTurn(id, turn, deadline, now)
  end
  local recorded, ends = unpack(redis.call('HMGET', entryPrefix .. id, 'r', 'd'))
  local latest = now + (tonumber(ends) or 0) - (tonumber(recorded) or 0)
  return deadline > latest + SET_BACK_MS and latest
end)

mend(queuedKey, function(id, queuedAt)
  if queuedAt <= now + SET_BACK_MS then
    return
  elseif redis.call('HGET', entryPrefix .. id, 's') == 'queued' then
    redis.call('HSET', entryPrefix .. id, 'q', now)
  end
  return now
end)

mend(dueKey, function(id)
  local state, log = unpack(redis.call('HMGET', entryPrefix .. id, 's', 'l'))
  if state ~= 'queued' then
    return now
  elseif bookedAt(log) > now + SET_BACK_MS then
    redis.call('HSET', entryPrefix .. id, 'w', now)
    return now
  end
end)

mend(outboxKey, function(_, dueAt)
  return dueAt > now + aheadMs + SET_BACK_MS and now
end)

return mended
