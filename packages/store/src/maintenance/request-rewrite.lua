-- Notes that an operator wants a rewrite, and in the audit who asked. If one is wanted already, it is the same one: nothing
-- changes, and the audit has who asked first. maintenance/plan-rewrite.lua says when it starts.
-- KEYS: 1 the record of rewrites, 2 the audit
-- ARGV: 1 operator, 2 details of the audit as a JSON object
-- Clock: Redis'. TTL: none.
-- Returns nothing.
-- @include redis/when-full
-- @include dead-letters/audit
if redis.call('HSETNX', KEYS[1], 'wanted', 1) == 1 then
  local time = redis.call('TIME')
  audit(KEYS[2], time[1] * 1000 + math.floor(time[2] / 1000), {by = ARGV[1], action = 'erase', details = ARGV[2]})
end
