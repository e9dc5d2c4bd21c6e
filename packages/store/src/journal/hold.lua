-- Keeps a turn for a next step or a retry: its prompt, how long it waits, and by which pointers it is found.
-- KEYS: from 8 on the keys of the pointers
-- ARGV: 1 id, 2 the prompt or '', 3 the wait in ms, 4 TTL of the pointers in ms, 5 the step,
--       6 which of the step's holds it is, from 1 on
-- Clock: Redis'. TTL: the pointers'.
-- Returns a code of JOURNALED_CODES in redis/scripts.ts. The same call again begins no wait: a next step
-- may have ended it meanwhile.
-- @include redis/when-full
-- @include redis/ledger
-- @include journal/drop-turn
-- @include journal/turn
local id, prompt, waitMs, pointerMs, step, number = unpack(ARGV)
local turn = readTurn(id)
if not turn then
  return '0'
end
if prompt ~= '' then
  redis.call('SET', promptKeyOf(id), prompt)
end
for at = 8, #KEYS do
  redis.call('SET', KEYS[at], id, 'PX', pointerMs)
end
if tonumber(number) > tonumber(turn['h' .. step] or 0) then
  redis.call('HSET', turnKeyOf(id), 'h' .. step, number)
  setWait(id, turn, tonumber(waitMs), clockMs())
  setDue(id, dueAt(turn))
end
return '1'
