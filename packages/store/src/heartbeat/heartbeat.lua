-- One heartbeat of one process: counts it, keeps the process' record, and says whether Redis still has what it had at
-- this process' previous heartbeat. If a heartbeat was written and isn't there any more, data were lost, and everything
-- that was written since that heartbeat may be lost with it. It also says whether Redis is full, so that intake would be
-- refused: its first write needs memory.
-- KEYS: 1 heartbeat (hash: epoch, beat, time `at` of the latest beat, `steady`: see heartbeat/gone.lua), 2 processes (hash: id to "beat seen_ms record"),
--       3 the latest loss, 4 queued, 5 dead, 6 awaiting (zsets, counted)
-- ARGV: 1 id of the process, 2 its record, 3 epoch and 4 beat of the last reply ('' and 0 at first),
--       5 time of that reply in ms, 6 the counts in that reply, as text,
--       7 ms after which a silent process is forgotten, 8 ms for which a loss is kept,
--       9 channel of the process' lifeline, '' if it has none, 10 not read: it takes the room of a call of intake
-- Clock: Redis'. TTL: the loss's. Records of silent processes are removed here.
-- Returns {now in ms, epoch, beat, queued, dead, awaiting, lost (1 or 0), time of the latest loss or 0, its text,
--          1 if the lifeline has a subscriber, else 0, how Redis refuses what needs memory or ''}.
-- Raises what Redis refuses otherwise.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- @include heartbeat/gone
local tried = redis.pcall('HSETNX', KEYS[1], 'epoch', time[1] .. '.' .. time[2])
local refusal = type(tried) == 'table' and tried.err or ''
-- @include redis/when-full
redis.call('HSETNX', KEYS[1], 'epoch', time[1] .. '.' .. time[2])
local id, record, knownEpoch, knownBeat = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])

local before = tonumber(redis.call('HGET', KEYS[1], 'beat') or 0)
local own = tonumber(string.match(redis.call('HGET', KEYS[2], id) or '', '^%d+') or knownBeat)
local epoch = redis.call('HGET', KEYS[1], 'epoch')
local isLost = knownEpoch ~= '' and (epoch ~= knownEpoch or before < knownBeat or own < knownBeat)

local counts = {redis.call('ZCARD', KEYS[4]), redis.call('ZCARD', KEYS[5]), redis.call('ZCARD', KEYS[6])}
local loss = redis.call('GET', KEYS[3])
local lostAt, lostText = string.match(loss or '0 ', '^(%d+) (.*)$')
lostAt = tonumber(lostAt)
-- If several processes find the same loss, the first one writes it down. A loss after now was found before Redis' clock
-- was set back. It counts as found now, so that it isn't shown for longer than others.
local isNew = isLost and (lostAt < tonumber(ARGV[5]) or lostAt > now)
if isNew or lostAt > now then
  lostAt, lostText = now, isNew and ARGV[6] or lostText
  redis.call('SET', KEYS[3], lostAt .. ' ' .. lostText, 'PX', ARGV[8])
end

local beat = redis.call('HINCRBY', KEYS[1], 'beat', 1)
redis.call('HSET', KEYS[1], 'at', now, 'steady', steadySince)
-- Others may rely on the lifeline only if it is seen in the way in which they would look.
local isSeen = ARGV[9] ~= '' and (subscribersOf(ARGV[9]) or 0) > 0
if isSeen then
  record = string.gsub(record, '}$', ',"hasLifeline":true}')
end
redis.call('HSET', KEYS[2], id, beat .. ' ' .. now .. ' ' .. record)
-- Readers leave silent processes out, so there is no need to remove them at each heartbeat.
if beat % 10 == 0 then
  local all = redis.call('HGETALL', KEYS[2])
  for at = 1, #all, 2 do
    -- A heartbeat far after now is as old: Redis' clock was set back since.
    if math.abs(now - tonumber(string.match(all[at + 1], '^%d+ (%d+)'))) > tonumber(ARGV[7]) then
      redis.call('HDEL', KEYS[2], all[at])
    end
  end
end
return {now, epoch, beat, counts[1], counts[2], counts[3], isLost and 1 or 0, lostAt, lostText, isSeen and 1 or 0,
  refusal}
