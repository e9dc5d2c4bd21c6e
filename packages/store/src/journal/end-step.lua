-- Ends a step whose turn goes on: keeps what it has written, takes its lease away, and begins the turn's wait.
-- ARGV: 1 id, 2 step, 3 sequence of the text, or `*` if it is the step's whole text, 4 the text, 5 the wait in ms, 6 outcome
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
if turn['l' .. step] then
  if sequence ~= '*' then
    appendText(id, step, sequence, text, turn['s' .. step], turn.b)
  elseif text ~= '' then
    -- The caller bounds it.
    redis.call('RPUSH', textKeyOf(id), step .. ',*,' .. text)
  end
  redis.call('HDEL', turnKeyOf(id), 'l' .. step, 's' .. step)
  redis.call('HSET', turnKeyOf(id), 'o', outcome)
  turn['l' .. step] = nil
  setWait(id, turn, tonumber(waitMs), now)
  setDue(id, dueAt(turn))
end
return latestLease(turn) > now and '2' or '1'
