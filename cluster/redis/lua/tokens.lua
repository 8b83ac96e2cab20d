-- A token bucket: leases units. See store.Tokens.
--
-- KEYS[1] is a hash. c: time of the latest command. f: nanoseconds from then until the bucket is full,
-- negative if it was. u: the unit.
local key = KEYS[1]
local spacing, need, want, hold, within = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local unit = tonumber(ARGV[6])
local got = redis.call('HMGET', key, 'c', 'f', 'u')
local at, full, had = number(got[1]), number(got[2]), number(got[3])
if not (at and full and had) and #redis.call('HKEYS', key) > 0 then return redis.error_reply(foreign) end

if at then
  -- If the clock was set back, the bucket is full earlier by the same amount.
  full = full - math.max(0, now - at) * 1000
  if full > 0 and unit ~= had then full = math.min(math.ceil(full * (unit / had)), 2 ^ 52) end
else
  full = 0
end
local wait = math.max(full, 0)
local granted = 0
if wait <= within then
  local most = math.min(math.max(need, want), math.floor((within - wait) / spacing) + 1)
  if most >= need then
    granted = most
    full = math.max(wait, hold) + granted * spacing
  end
end
redis.call('HSET', key, 'c', text(now), 'f', text(full), 'u', ARGV[6])
redis.call('PEXPIRE', key, text(math.ceil((math.max(0, full) + 60e9) / 1e6)))
return {granted, math.min(wait, 9e15), now}
