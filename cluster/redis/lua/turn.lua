-- A throttle: leases consecutive turns. See store.Turn.
--
-- KEYS[1] is a hash. t: time of the latest command. a: nanoseconds from then to the latest turn given,
-- negative if that had passed; missing if there was none.
local key = KEYS[1]
local spacing, need, want, within = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local got = redis.call('HMGET', key, 't', 'a')
local at, last = number(got[1]), number(got[2])
if not at and (got[1] or got[2] or #redis.call('HKEYS', key) > 0) then return redis.error_reply(foreign) end

local first = 0
if last then
  -- If the clock was set back, the latest turn moves back by the same amount.
  last = last - math.max(0, now - at) * 1000
  first = math.max(0, last + need * spacing)
end
local granted = 0
if first <= within then
  granted = math.max(need, want)
  last = first + (granted - need) * spacing
end
if last then
  redis.call('HSET', key, 't', text(now), 'a', text(last))
else
  redis.call('HSET', key, 't', text(now))
end
-- Turns long past count as now, even for a call of several units.
local lives = math.max(0, last or 0) + math.max(60e9, within + math.max(64, need) * spacing)
redis.call('PEXPIRE', key, text(math.ceil(lives / 1e6)))
return {granted, math.min(first, 9e15), now}
