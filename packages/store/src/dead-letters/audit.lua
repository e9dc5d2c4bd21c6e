-- Who did what, as a stream. The entry is written by the script that did it, so that neither exists without the other.
-- `details` may contain an operator's words: they are shown to operators and never logged.
local AUDIT_KEPT_MS = 400 * 24 * 60 * 60 * 1000

-- entry: by (a name, and behind a blank the address that the call came from, if any), action, publisher (whose operators see
-- the entry; nil if it concerns several), id (of an ad response, or nil), replay and discard (ids of a bulk replay and a bulk
-- discard, or nil), details as JSON.
local function audit(auditKey, now, entry)
  local name, address = string.match(entry.by, '^(%S+) (%S+)$')
  redis.call('XADD', auditKey, 'MINID', '~', string.format('%.0f', now - AUDIT_KEPT_MS), '*',
    'by', name or entry.by, 'address', address or '', 'action', entry.action, 'publisher', entry.publisher or '',
    'id', entry.id or '', 'replay', entry.replay or '', 'discard', entry.discard or '', 'details', entry.details)
end
