-- Notes in the audit that a session was searched for to the end, also if nothing of it was found. So the audit proves that the
-- request of a user was handled. What was erased on the way has entries of its own (erasure/erase.lua).
-- KEYS: 8 the audit
-- ARGV: 1 operator, 2 publisher, 3 details of the audit as a JSON object
-- Clock: Redis'. TTL: none.
-- Returns nothing.
-- @include redis/when-full
-- @include redis/ledger
-- @include dead-letters/audit
local by, publisher, details = unpack(ARGV)
audit(KEYS[8], clockMs(), {by = by, action = 'erase', publisher = publisher, details = details})
