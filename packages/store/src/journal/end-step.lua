-- Ends a step whose turn goes on: keeps what it has written, takes its lease away, and begins the turn's wait.
-- A step may end after one that has answered its calls and was final. Then the turn doesn't wait any more: it is to be settled.
-- It waits for what the latest step led to: a later one than this has a lease, an end or a wait of its own.
-- If Redis came back without the join of the step, it joins again first.
-- If earlier pieces of the step are missing, nothing changes: the caller ends it with its whole text.
-- ARGV: 1 id, 2 step, 3 sequence of the text, or `*` if the step is final and this is its whole text, or `=` if this is the whole
--       text of another step, 4 the text, 5 the wait in ms, 6 outcome
-- Clock: Redis'. TTL: none.
-- Returns a code of ENDED_STEP_CODES in redis/scripts.ts. The same call again changes nothing.
-- @include redis/when-full
-- @include redis/ledger
-- @include journal/drop-turn
-- @include journal/turn
local id, step, sequence, text, waitMs, outcome = unpack(ARGV)
local turn = readTurn(id)
if not turn then
  return '0'
end
local now = clockMs()
if tonumber(step) > tonumber(turn.n) then
  joinStep(id, step, now)
  turn = readTurn(id)
end
if turn['l' .. step] then
  if tonumber(sequence) then
    if appendText(id, step, sequence, text, turn['s' .. step], turn.b) then
      return '4'
    end
  elseif text ~= '' then
    -- The caller bounds it.
    redis.call('RPUSH', textKeyOf(id), step .. ',*,' .. text)
  end
  redis.call('HDEL', turnKeyOf(id), 'l' .. step, 's' .. step)
  turn['l' .. step] = nil
  if tonumber(step) > tonumber(turn.f or 0) then
    redis.call('HSET', turnKeyOf(id), 'o', outcome, unpack(sequence == '*' and {'f', step} or {}))
    if step == turn.n then
      setWait(id, turn, tonumber(waitMs), now)
    end
  end
  setDue(id, dueAt(turn))
end
if latestLease(turn) > now then
  return '2'
end
local isOvertaken = tonumber(step) < tonumber(turn.f or 0)
return isOvertaken and tonumber(turn.w or 0) <= now and '3' or '1'
