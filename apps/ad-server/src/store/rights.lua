-- Tries each command that the ad server or its scripts run, on a key that isn't there. What it writes, it removes.
-- Redis checks a command's right first, so most errors mean that the right is there.
-- KEYS[1] the key. Clock: none. TTL: none.
-- Returns for each command that failed {its name in lower case, Redis' error as a text}.
local key = KEYS[1]
local TRIED = {
  {'time'}, {'ping'}, {'del', key},
  {'hset', key, 'f', 'v'}, {'hget', key, 'f'}, {'hmget', key, 'f'}, {'hgetall', key}, {'hincrby', key, 'n', 1},
  {'pexpire', key, 60000}, {'pexpireat', key, 1}, {'del', key},
  {'set', key, 0, 'EX', 60, 'NX'}, {'incrby', key, 1}, {'pttl', key}, {'del', key},
  {'zadd', key, 1, 'm'}, {'zcard', key}, {'zscore', key, 'm'}, {'zrangebyscore', key, 1, 1}, {'zrem', key, 'm'},
  {'zremrangebyscore', key, 1, 1}, {'del', key},
  {'sadd', key, 'm'}, {'smembers', key}, {'del', key},
}
local errors = {}
for _, command in ipairs(TRIED) do
  local reply = redis.pcall(unpack(command))
  if type(reply) == 'table' and reply.err then
    errors[#errors + 1] = {command[1], reply.err}
  end
end
return errors
