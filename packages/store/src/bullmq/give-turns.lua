-- Gives turns to jobs that wait in BullMQ's list: see bullmq/turns.lua.
-- KEYS: 1 to 3 as `giveTurns` reads them
-- ARGV: 1 prefix of job keys, 2 how many jobs at most
-- Clock: none. TTL: none.
-- Returns 1 if the list has more jobs, else 0.
-- @include redis/when-full
-- @include bullmq/turns
return giveTurns(KEYS, ARGV[1], {}, tonumber(ARGV[2]))
