-- While Redis is away, no process can send a heartbeat, all lifelines end, and no lease of a turn can be renewed. So the
-- silence of a process or of a step counts only from the time since which heartbeats have come without a longer pause than this.
local PAUSE_MAX_MS = 1500

local function steadySinceMs(heartbeatKey, now)
  local beats = redis.call('HMGET', heartbeatKey, 'at', 'steady')
  local isPause = math.abs(now - tonumber(beats[1] or 0)) > PAUSE_MAX_MS
  return isPause and now or tonumber(beats[2] or now)
end
