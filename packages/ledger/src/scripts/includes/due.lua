-- Next attempts by Redis' clock. The queue puts a job off by its worker's clock: if that was ahead, the attempt
-- is overdue by this one, and workers bring the job back (overdue-attempts.lua).
local dueKey = queuedKey .. ':due' -- zset: id by the time of its next attempt
