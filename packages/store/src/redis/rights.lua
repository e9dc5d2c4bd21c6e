-- Tries each command that scripts of ours or of BullMQ run, on a key that isn't there. What it writes, it removes.
-- Redis checks a command's right first, so most errors mean that the right is there.
-- KEYS: 1 the key. ARGV: channels
-- Clock: none. TTL: none.
-- Returns for each command that failed {its name in lower case, Redis' error as a text}.
local key = KEYS[1]
local TRIED = {
  {'time'}, {'exists', key}, {'del', key}, {'pttl', key}, {'pexpire', key, 1}, {'persist', key},
  {'hset', key, 'f', 'v'}, {'hmset', key, 'f', 'v'}, {'hsetnx', key, 'f', 'v'}, {'hget', key, 'f'}, {'hmget', key, 'f'},
  {'hgetall', key}, {'hscan', key, 0}, {'scan', 0}, {'hexists', key, 'f'}, {'hincrby', key, 'n', 1}, {'hdel', key, 'f', 'n'},
  {'set', key, 'v', 'PX', 1000}, {'get', key}, {'incr', key}, {'del', key},
  {'zadd', key, 1, 'm'}, {'zcard', key}, {'zcount', key, 1, 1}, {'zscore', key, 'm'}, {'zrank', key, 'm'}, {'zrange', key, 0, 0},
  {'zrevrange', key, 0, 0}, {'zrangebyscore', key, 1, 1}, {'zrevrangebyscore', key, 1, 1}, {'zpopmin', key},
  {'zrem', key, 'm'}, {'zremrangebyrank', key, 0, 0}, {'zremrangebyscore', key, 1, 1}, {'del', key},
  {'lpush', key, 'm'}, {'rpush', key, 'm'}, {'llen', key}, {'lindex', key, 0}, {'lpos', key, 'm'}, {'lrange', key, 0, 0},
  {'ltrim', key, 0, 5}, {'rpoplpush', key, key}, {'lrem', key, 0, 'x'}, {'lpop', key}, {'rpop', key}, {'del', key},
  {'sadd', key, 'm'}, {'scard', key}, {'smembers', key}, {'smove', key, key, 'm'}, {'srem', key, 'm'},
  {'xadd', key, 'MAXLEN', '~', 1, '*', 'f', 'v'}, {'xtrim', key, 'MAXLEN', '~', 1}, {'xrevrange', key, '+', '-'},
  {'xrange', key, '-', '+'}, {'del', key},
  {'publish', ARGV[1], ''}, {'pubsub', 'NUMSUB', ARGV[2]},
}
local errors = {}
for _, command in ipairs(TRIED) do
  local reply = redis.pcall(unpack(command))
  if type(reply) == 'table' and reply.err then
    errors[#errors + 1] = {command[1], reply.err}
  end
end
return errors
