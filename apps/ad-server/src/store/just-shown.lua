-- Included by record-injection.lua: what a session was just shown steps back.
-- KEYS[9] sorted set of ads by the time at which the session was last shown them; it lives as long as REPEAT_AFTER_MS
--   and has at most one member for each ad of the catalogue
--
-- Offers that the session wasn't just shown come first, in the order of the auction. The others come after them, and of
-- those the one shown longest ago is first. So the session sees the same ad again only if there is no other.
--
-- Shown is what was injected, acknowledged or not. The next prompt of a session often comes before the acknowledgment,
-- and stepping back costs nobody money. An ad steps back alone: another ad of its advertiser is another product, and
-- may be what the next prompt is about.
local shownKey = KEYS[9]
local REPEAT_AFTER_MS = 1800000

-- The offers with their places in the auction, in the order in which they are tried.
local function inTurn(offers)
  redis.call('ZREMRANGEBYSCORE', shownKey, '-inf', now - REPEAT_AFTER_MS)
  local turns = {}
  for place, offer in ipairs(offers) do
    local shownAt = tonumber(redis.call('ZSCORE', shownKey, offer.ad)) or 0
    turns[place] = {place = place, offer = offer, shownAt = shownAt}
  end
  table.sort(turns, function(one, other)
    if one.shownAt ~= other.shownAt then
      return one.shownAt < other.shownAt
    end
    return one.place < other.place
  end)
  return turns
end

local function rememberShown(offer)
  redis.call('ZADD', shownKey, now, offer.ad)
  redis.call('PEXPIRE', shownKey, REPEAT_AFTER_MS)
end
