-- One sign of life of one process: counts it, keeps the process' record, and tells whether Redis still has
-- what it had at this process' pulse before. What a pulse wrote and a later one doesn't find was lost, and
-- everything else that was written since that pulse may be lost with it.
-- KEYS: 1 heartbeat (hash: epoch, beat), 2 processes (hash: id to "beat seen_ms record"),
--       3 note of the latest loss, 4 queued, 5 dead, 6 awaiting (zsets, counted)
-- ARGV: 1 id of the process, 2 its record, 3 epoch and 4 beat that it was answered last ('' and 0 at first),
--       5 time of that answer in ms, 6 counts that it was answered then, as text,
--       7 ms after which a silent process is forgotten, 8 ms that a note of a loss is kept
-- Clock: Redis'. TTL: the note's; silent processes' records are removed here.
-- Returns {now in ms, epoch, beat, queued, dead, awaiting, lost (1 or 0), time of the noted loss or 0, its text}.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local id, record, knownEpoch, knownBeat = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])

local before = tonumber(redis.call('HGET', KEYS[1], 'beat') or 0)
local own = tonumber(string.match(redis.call('HGET', KEYS[2], id) or '', '^%d+') or knownBeat)
redis.call('HSETNX', KEYS[1], 'epoch', time[1] .. '.' .. time[2])
local epoch = redis.call('HGET', KEYS[1], 'epoch')
local isLost = knownEpoch ~= '' and (epoch ~= knownEpoch or before < knownBeat or own < knownBeat)

local counts = {redis.call('ZCARD', KEYS[4]), redis.call('ZCARD', KEYS[5]), redis.call('ZCARD', KEYS[6])}
local note = redis.call('GET', KEYS[3])
-- Of several processes that find the same loss the first one notes it.
local isNoted = note and tonumber(string.match(note, '^%d+')) >= tonumber(ARGV[5])
if isLost and not isNoted then
  note = now .. ' ' .. ARGV[6]
  redis.call('SET', KEYS[3], note, 'PX', ARGV[8])
end

local beat = redis.call('HINCRBY', KEYS[1], 'beat', 1)
redis.call('HSET', KEYS[2], id, beat .. ' ' .. now .. ' ' .. record)
-- Readers leave silent processes out by themselves, so that they need not be looked for at each pulse.
if beat % 10 == 0 then
  local all = redis.call('HGETALL', KEYS[2])
  for at = 1, #all, 2 do
    if now - tonumber(string.match(all[at + 1], '^%d+ (%d+)')) > tonumber(ARGV[7]) then
      redis.call('HDEL', KEYS[2], all[at])
    end
  end
end
local lostAt, lostText = string.match(note or '0 ', '^(%d+) (.*)$')
return {now, epoch, beat, counts[1], counts[2], counts[3], isLost and 1 or 0, tonumber(lostAt), lostText}
