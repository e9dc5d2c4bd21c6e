-- Opens turns: records each injection, and gives its first step a lease. It doesn't run on a full Redis: no ad is put into a
-- prompt then.
-- KEYS: 1 to 7 as in redis/ledger.lua (1 is the first entry), from 8 on the other entries
-- ARGV: 8 for each: 1 id, 2 publisher, 3 dialect, 4 token, 5 session's hash or '', 6 deadline in ms from now for a manual turn,
--       '' for a journaled one, 7 the product's name or '', 8 its landing page or ''
-- Clock: Redis'. TTL: none.
-- Returns for each a code of OPENED_CODES in redis/scripts.ts. The same token again gets the same code while the entry lives;
-- of a journaled turn, while the turn is open.
-- @include redis/ledger
-- @include redis/batch
-- @include intake/record-awaiting
-- @include journal/drop-turn
-- @include journal/turn
local MEMBERS = 8
local now = clockMs()

local function wasOpened(id, mark, token)
  return mark == MANUAL .. token or (mark == JOURNALED and redis.call('HGET', turnKeyOf(id), 'k' .. token) == '1')
end

local function openManual(key, id, dialect, token, injection)
  recordAwaiting(key, id, injection)
  redis.call('HSET', key, 'd', injection.due, 'T', MANUAL .. token)
  count('turns', injection.publisher, dialect .. ',manual')
end

local function openJournaled(key, id, dialect, token, injection, product, page)
  local publisher = injection.publisher
  recordAwaiting(key, id, injection)
  redis.call('HSET', key, 'T', JOURNALED)
  redis.call('HSET', turnKeyOf(id), 'p', publisher, 'd', dialect, 'n', 1, 'k' .. token, 1, 'l1', injection.due)
  if product ~= '' then
    redis.call('HSET', turnKeyOf(id), 'P', product, 'U', page)
  end
  add(gaugesKey, publisher .. '|turns', 1)
end

local function open(at)
  local id, publisher, dialect, token, session, deadlineMs, product, page =
    unpack(ARGV, MEMBERS * (at - 1) + 1, MEMBERS * at)
  local key = entryKeyOf(at)
  local state, mark = unpack(redis.call('HMGET', key, 's', 'T'))
  if state then
    return wasOpened(id, mark, token) and '1' or '0'
  end
  local isManual = deadlineMs ~= ''
  local due = textOfTime(now + (isManual and deadlineMs or LEASE_MS))
  local injection = {publisher = publisher, session = session, now = now, due = due}
  if isManual then
    openManual(key, id, dialect, token, injection)
  else
    openJournaled(key, id, dialect, token, injection, product, page)
  end
  count('turns_opened', publisher, dialect)
  return '1'
end

return eachOf(#ARGV / MEMBERS, open)
