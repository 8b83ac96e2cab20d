-- A window: leases units of a bucket, and takes units back. See cluster.Take.
--
-- KEYS[1] is a hash. h: the number of head, the newest bucket that was ever current.
-- e: the epoch. l: no bucket after it holds units. u<bucket>: units. a<bucket>: members that have taken while it was current.
-- s<member>: the member's highest seq, and head when it was seen.
local key = KEYS[1]
local width, phase, span, buckets = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local limit, need, want = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local seen, ahead, borrow = tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10])
local member, seq = ARGV[11], tonumber(ARGV[12])
local epoch, newEpoch = tonumber(ARGV[13]), tonumber(ARGV[14])
local backs, charges = tonumber(ARGV[15]), tonumber(ARGV[16])

-- The current bucket by the clock, and how many nanoseconds of it have passed. Nanoseconds
-- since 1970 are beyond 2^53, so they are divided digit by digit.
local passed = now % width
local current = (now - passed) / width
for _ = 1, 3 do
  passed = passed * 10
  local digit = math.floor(passed / width)
  current = current * 10 + digit
  passed = passed - digit * width
end
passed = passed - phase
if passed < 0 then
  current, passed = current - 1, passed + width
end

-- The fields that a call looks at, but for units.
local function read()
  return redis.call('HMGET', key, 'h', 'e', 's' .. member, 'a' .. text(current), 'a' .. text(current - 1), 'l')
end

local write, written, drop = {}, {}, {}
local function set(name, value)
  written[name] = true
  write[#write + 1] = name
  write[#write + 1] = value
end

local u = {} -- u[i] is bucket current-span+i, so the current one is u[span]
local got, moved = read(), false
local head, has = number(got[1]), number(got[2])
if not head or not has then
  if got[1] or got[2] or #redis.call('HKEYS', key) > 0 then return foreign() end
  has = newEpoch
  set('e', text(has))
elseif current <= head - span then
  -- The clock was set back by the ring or more: all that counts or is to come is moved to where
  -- it is now. What is to come counts once more where it may still be spent.
  local all = redis.call('HGETALL', key)
  local sum, coming, far = 0, 0, 0
  for i = 1, #all, 2 do
    local kind, rest = string.match(all[i], '^([uas])(.*)$')
    local ahead, n = kind == 'u' and tonumber(rest) - head or -span, tonumber(all[i + 1])
    if ahead > -span then sum = sum + n end
    if ahead > 0 and n > 0 then
      coming = coming + n
      far = math.max(far, math.min(ahead + 1, buckets))
    end
    if kind then drop[#drop + 1] = all[i] end
  end
  has = newEpoch
  set('e', text(has))
  got, moved = {}, true
  u[span] = sum
  set('u' .. text(current), text(sum))
  if coming > 0 then
    u[span + far] = coming
    set('u' .. text(current + far), text(coming))
    set('l', text(current + far))
    got[6] = text(current + far)
  end
elseif current < head then -- it was set back a little, and stands still until it gets there
  current, passed = head, 0
  got = read()
end
local latest = number(got[6]) or current
if head and not moved then
  local names = {}
  for i = 1, span + math.max(0, math.min(buckets, latest - current)) do
    names[i] = 'u' .. text(current - span + i)
  end
  local units = redis.call('HMGET', key, unpack(names))
  for i = 1, #names do u[i] = number(units[i]) end
end
for i = 1, span + buckets do
  u[i] = u[i] or 0
end

if head ~= current then
  set('h', text(current))
  if head and head < current then
    local all = redis.call('HGETALL', key)
    for i = 1, #all, 2 do
      local kind, rest = string.match(all[i], '^([uas])(.*)$')
      local gone
      if kind == 'u' then
        gone = tonumber(rest) <= current - span
      elseif kind == 'a' then
        gone = tonumber(rest) < current - 1
      elseif kind == 's' then
        gone = tonumber(string.match(all[i + 1], ' (%-?%d+)$')) < current - span - buckets
      end
      if gone then drop[#drop + 1] = all[i] end
    end
  end
end

local changed = {}
local function add(bucket, n)
  local i = bucket - current + span
  if i < 1 or i > span + buckets then return end
  n = math.max(n, -u[i])
  if n ~= 0 then
    u[i] = u[i] + n
    changed[i] = true
  end
end

local last = got[3] and number(string.match(got[3], '^%d+')) or 0
if seq > last then
  set('s' .. member, text(seq) .. ' ' .. text(current))
  if epoch == has then
    local first = 17
    for i = first, first + 2 * backs - 2, 2 do
      add(tonumber(ARGV[i]), -tonumber(ARGV[i + 1]))
    end
    first = first + 2 * backs
    for i = first, first + 2 * charges - 2, 2 do
      add(math.min(tonumber(ARGV[i]), current), tonumber(ARGV[i + 1]))
    end
  end
end

local target = span
if ahead > current then target = math.min(ahead - current + span, span + buckets) end

-- most[i] is the largest sum of a window that ends with u[i] or later. Windows that end after u[size]
-- hold less than the one that ends with it.
local size = span + buckets
if borrow == 0 then size = math.max(target, math.min(size, latest - current + span)) end
local sums, most = {}, {}
local function sum()
  local total = 0
  for i = 1, span do total = total + u[i] end
  sums[span] = total
  for i = span + 1, size do
    total = total + u[i] - u[i - span]
    sums[i] = total
  end
  most[size + 1] = 0
  for i = size, span, -1 do most[i] = math.max(sums[i], most[i + 1]) end
end
-- room is how many units more fit a bucket. Only the current one has windows that end before size.
local function room(i)
  if i == span and 2 * span - 1 < size then
    local highest = 0
    for j = span, 2 * span - 1 do highest = math.max(highest, sums[j]) end
    return math.max(0, limit - highest)
  end
  return math.max(0, limit - most[i])
end
sum()

local asks = need > 0 or want > 0
local active = math.max(number(got[4]) or 0, number(got[5]) or 0, 1)
if asks and seen ~= current then
  local here = (number(got[4]) or 0) + 1
  active = math.max(active, here)
  set('a' .. text(current), text(here))
end

local granted, left = 0, room(target)
if asks and (epoch == 0 or epoch == has) then
  if need <= left then
    granted = math.min(left, math.max(need, math.min(want, math.floor(left / active))))
  elseif borrow > 0 then
    for i = span + 1, size do
      if (i - span) * width - passed >= borrow then break end
      if need <= room(i) then
        target, granted = i, need
        break
      end
    end
  end
end
if granted > 0 then
  if target > span and current - span + target > latest then set('l', text(current - span + target)) end
  u[target] = u[target] + granted
  changed[target] = true
end
-- While the current bucket has room, nobody needs the sums as they are now.
local rest = left - granted
local full = target ~= span or rest == 0
if full then
  sum()
  rest = room(target)
end

local free = 0
if full and limit > 0 and room(span) == 0 then
  local i, total = span, 0
  repeat
    i = i + 1
    if i <= size then
      total = most[i]
    else
      total = (sums[i - 1] or 0) - (u[i - span] or 0)
      sums[i] = total
    end
  until total < limit
  free = (i - span) * width - passed
end

local lives = buckets + 3
for i = size, span, -1 do
  if u[i] > 0 then
    lives = lives + i - span
    break
  end
end
for i in pairs(changed) do
  set('u' .. text(current - span + i), text(u[i]))
end
for i = 1, #write, 1000 do
  redis.call('HSET', key, unpack(write, i, math.min(i + 999, #write)))
end
table.sort(drop)
for _, name in ipairs(drop) do
  if not written[name] then redis.call('HDEL', key, name) end
end
redis.call('PEXPIRE', key, text(math.ceil(lives * width / 1000000)))
return {granted, current - span + target, current, width - passed, rest, free, active, now, has}
