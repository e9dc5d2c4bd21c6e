-- Next attempts by Redis' clock. The queue delays a job by its worker's clock. If that clock was ahead, the attempt is
-- overdue by this one, and a worker brings the job back (maintenance/overdue-attempts.lua).
local dueKey = queuedKey .. ':due' -- zset: id by the time of its next attempt
