-- Leaves a large body in Redis when its job is fetched. So a worker decides when it has room for the body, and how many
-- large bodies it holds (delivery/payload.ts).

-- Jobs with no more bytes of data than this come whole. Most do.
local WHOLE_BYTES_MAX = 8192

-- The start of the data, up to the body, as `DeliveryJob` of contract is written. Data of another form come whole.
local BEFORE_BODY = '^{"v":%d+,"adResponseId":"[%x-]+","adAckId":"[%x-]+","publisher":"[^"]*","body":"()'
-- A body can't contain this: in a JSON string each quotation mark has a backslash before it.
local AFTER_BODY = '","requestId":"'

-- The data with an empty body, and the size of the body as it is stored.
local function withoutBody(data)
  local from = string.match(data, BEFORE_BODY)
  local to = from and string.find(data, AFTER_BODY, from, true)
  if not to then
    return data
  end
  return '{"bodyBytes":' .. to - from .. ',"job":' .. string.sub(data, 1, from - 1) .. string.sub(data, to) .. '}'
end

-- reply: of a script of BullMQ that fetches a job. Its first member is the job's fields and values.
local function leavePayload(reply)
  local fields = type(reply) == 'table' and reply[1]
  if type(fields) == 'table' then
    for at = 1, #fields, 2 do
      if fields[at] == 'data' and #fields[at + 1] > WHOLE_BYTES_MAX then
        fields[at + 1] = withoutBody(fields[at + 1])
      end
    end
  end
  return reply
end
