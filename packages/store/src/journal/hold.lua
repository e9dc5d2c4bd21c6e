-- Keeps a turn for a next step or a retry: its prompt, how long it waits, and by which pointers it is found.
-- Without room for its prompt it waits, too, but nothing can find it.
-- KEYS: from 8 on the keys of the pointers
-- ARGV: 1 id, 2 the prompt or '', 3 the wait in ms, 4 TTL of the pointers in ms, 5 the step,
--       6 which of the step's holds it is, from 1 on, 7 most bytes of all prompts of a publisher, '' without a limit,
--       8 `retry` or `next_step`: what it waits for
-- Clock: Redis'. TTL: the pointers'.
-- Returns a code of HELD_CODES in redis/scripts.ts. The same call again begins no wait: a next step
-- may have ended it meanwhile.
-- @include redis/when-full
-- @include redis/ledger
-- @include journal/drop-turn
-- @include journal/turn
local id, prompt, waitMs, pointerMs, step, number, most, awaits = unpack(ARGV)
local turn = readTurn(id)
if not turn then
  return '0'
end

-- Returns whether there is room for it.
local function keepPrompt()
  local more = #prompt - (turn.B or 0)
  local bytes = more + (redis.call('HGET', promptBytesKey, turn.p) or 0)
  if more > 0 and most ~= '' and bytes > tonumber(most) then
    return false
  end
  redis.call('SET', promptKeyOf(id), prompt)
  redis.call('HSET', turnKeyOf(id), 'B', #prompt)
  redis.call('HSET', promptBytesKey, turn.p, bytes)
  return true
end

local isFound = prompt == '' or keepPrompt()
for at = 8, isFound and #KEYS or 0 do
  redis.call('SET', KEYS[at], id, 'PX', pointerMs)
end
if tonumber(number) > tonumber(turn['h' .. step] or 0) then
  redis.call('HSET', turnKeyOf(id), 'h' .. step, number)
  redis.call(unpack(awaits == 'retry' and {'HSET', turnKeyOf(id), 'R', '1'} or {'HDEL', turnKeyOf(id), 'R'}))
  setWait(id, turn, tonumber(waitMs), clockMs())
  setDue(id, dueAt(turn))
end
return isFound and '1' or '2'
