-- Keeps a turn for a next step or a retry: its prompt, how long it waits, and by which pointers it is found.
-- KEYS: from 8 on the keys of the pointers
-- ARGV: 1 id, 2 the prompt or '', 3 the wait in ms, 4 TTL of the pointers in ms
-- Clock: Redis'. TTL: the pointers'.
-- Returns a code of JOURNALED_CODES in redis/scripts.ts. The same call again only begins the wait anew.
-- @include redis/when-full
-- @include redis/ledger
-- @include journal/drop-turn
-- @include journal/turn
local id, prompt, waitMs, pointerMs = unpack(ARGV)
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
setWait(id, turn, tonumber(waitMs), clockMs())
setDue(id, dueAt(turn))
return '1'
