-- Where the journal keeps a turn, and how a turn leaves it. Needs redis/ledger.lua.
-- 1. A turn exists exactly as long as its hash. Its entry is awaiting, and in that index by the time when the turn is due.
-- 2. An entry's field `T` stays when the turn is over: JOURNALED, or MANUAL and the token that opened the turn.
-- 3. A turn counts under the publisher that opened it, also if another one has adopted its ad response meanwhile. So turns
--    opened are turns ended plus open ones, for each publisher at any moment.
local JOURNALED, MANUAL = 'j', 'm'

-- Hash: p publisher, d dialect, n number of the last step, b bytes of text, w end of the wait, W its length in ms, o outcome of
-- the latest step that ended, f number of the last final step that ended while others ran; of each step that runs l<step> end of
-- its lease and s<step> its last sequence; k<token> number of the step with this token; P name of the product and U its landing
-- page; B bytes of its prompt; R `1` if it waits for a retry of its step, and not for a next one. Times are in ms.
local function turnKeyOf(id)
  return awaitingKey .. ':turn:' .. id
end
-- List of pieces: `step,sequence,text`. With `*` as its sequence, a piece is the step's whole text.
local function textKeyOf(id)
  return awaitingKey .. ':text:' .. id
end
-- String: the enhanced prompt.
local function promptKeyOf(id)
  return awaitingKey .. ':prompt:' .. id
end

-- Hash: publisher to the bytes of all its prompts.
local promptBytesKey = awaitingKey .. ':prompt-bytes'

-- Text and prompt go with the turn.
local function dropTurn(id, outcome)
  local turnKey = turnKeyOf(id)
  local publisher, dialect, promptBytes = unpack(redis.call('HMGET', turnKey, 'p', 'd', 'B'))
  if publisher then
    redis.call('DEL', turnKey, textKeyOf(id), promptKeyOf(id))
    if promptBytes and redis.call('HINCRBY', promptBytesKey, publisher, -promptBytes) <= 0 then
      redis.call('HDEL', promptBytesKey, publisher)
    end
    count('turns', publisher, dialect .. ',' .. outcome)
    add(gaugesKey, publisher .. '|turns', -1)
  end
end
