-- A semaphore: sets the number of permits that a member holds. See store.Permits.
--
-- KEYS[1] is a hash. p: permits held by all members. n: members that hold permits. c: time of the latest
-- command. m<member>: a member's permits, and its highest seq. KEYS[2] is a sorted set of members by
-- expiry.
local key, expiries = KEYS[1], KEYS[2]
local member, seq = ARGV[1], tonumber(ARGV[2])
local limit, claim, need, want = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local expiry = tonumber(ARGV[7])

local got = redis.call('HMGET', key, 'p', 'n', 'c', 'm' .. member)
local total, active, came = number(got[1]), number(got[2]), number(got[3])
if not (total and active and came) then
  if #redis.call('HKEYS', key) > 0 then return redis.error_reply(foreign) end
  total, active, came = 0, 0, now
end
local held, last = string.match(got[4] or '0 0', '^(%d+) (%d+)$')
held, last = tonumber(held), tonumber(last)

-- If the clock was set back, all expire earlier by the same amount.
local back = math.max(0, came - now)
local gone, moved = redis.call('ZRANGEBYSCORE', expiries, '-inf', text(now + back)), {}
for _, name in ipairs(gone) do
  local has = tonumber(string.match(redis.call('HGET', key, 'm' .. name) or '0', '^%d+'))
  total = total - has
  if has > 0 then active = active - 1 end
  if name == member then held, last = 0, 0 end
end
if back > 0 then
  moved = redis.call('ZRANGEBYSCORE', expiries, '(' .. text(now + back), '+inf', 'WITHSCORES')
end

if seq > last then
  last = seq
  local others = active
  if held == 0 then others = others + 1 end
  local keeps = math.max(claim, math.min(held, want))
  local free = math.max(0, limit - (total - held) - keeps)
  local holds = keeps
  if need <= keeps + free then
    holds = math.max(keeps, need, math.min(want, keeps + math.floor(free / others)))
  end
  if held > 0 then active = active - 1 end
  if holds > 0 then active = active + 1 end
  total, held = total - held + holds, holds
end

redis.call('HSET', key, 'p', text(total), 'n', text(active), 'c', text(now),
  'm' .. member, text(held) .. ' ' .. text(last))
local entries = {text(now + expiry), member}
for i = 1, #moved, 2 do
  if moved[i] ~= member then
    entries[#entries + 1] = text(moved[i + 1] - back)
    entries[#entries + 1] = moved[i]
  end
end
for i = 1, #entries, 1000 do
  redis.call('ZADD', expiries, unpack(entries, i, math.min(i + 999, #entries)))
end
for _, name in ipairs(gone) do
  if name ~= member then
    redis.call('HDEL', key, 'm' .. name)
    redis.call('ZREM', expiries, name)
  end
end
local lives = math.ceil(expiry / 1000)
for _, k in ipairs({key, expiries}) do
  if redis.call('PTTL', k) < lives then redis.call('PEXPIRE', k, text(lives)) end
end
return {held, total, active, now}
