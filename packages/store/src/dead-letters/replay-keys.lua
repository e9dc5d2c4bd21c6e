-- The keys of scripts on bulk replays. They follow the seven of redis/ledger.lua.
local auditKey = KEYS[8]   -- stream: who did what
local replayKey = KEYS[9]  -- hash: one bulk replay
local replaysKey = KEYS[10] -- zset: id of a bulk replay by its creation
local runningKey = KEYS[11] -- set: ids of those that run
