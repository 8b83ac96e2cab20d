-- A window: leases units of a bucket, and accepts returned units. See store.Take.
--
-- KEYS[1] is a hash. Its values are doubles, 8 bytes each, since one field is read and written faster
-- than one for each bucket. w: head, the newest bucket that was ever current; the epoch; the members that
-- took units in head, and in the bucket before; the members of these that got some units but wanted more,
-- likewise; then the units of each bucket from head-span+1 to head or, if later, the last bucket with
-- granted units. s<member>: the member's highest seq, and head at that time.
--
-- ARGV[1] is the member's field. ARGV[2] holds the numbers below, as doubles, since an argument costs more
-- than a number; then pairs of a bucket and units: the backs, then the charges. The reply is doubles too.
--
-- The cost of this script bounds the number of members: it makes few calls, and looks up functions once.
local call, read, write, max, min = redis.call, struct.unpack, struct.pack, math.max, math.min
local key, member, numbers = KEYS[1], ARGV[1], ARGV[2]
local width, phase, span, buckets, limit, need, want, seen, shortfall, ahead, borrow, seq, epoch, newEpoch, backs, more =
  read('<ddddddddddddddd', numbers)

-- doubles returns the format of n doubles.
local function doubles(n)
  if n <= 64 then return string.sub('<dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd', 1, n + 1) end
  return '<' .. string.rep('d', n)
end

-- The current bucket by the clock, and the nanoseconds of it that have passed, negative if the clock was
-- set back to before it; see below. Nanoseconds since 1970 exceed 2^53, but a bucket lasts whole
-- microseconds.
local micros = now % (width / 1000)
local current = (now - micros) / (width / 1000)
local passed = micros * 1000 - phase
if passed < 0 then
  current, passed = current - 1, passed + width
end

-- u[at] is the current bucket's units, u[last] the last bucket's.
local u, at, last
local head, has, here, before, short, shortBefore
local drop -- fields of forgotten members, if any
local got = call('HMGET', key, 'w', member)
local sighting = got[2]
if not got[1] then
  if sighting or #call('HKEYS', key) > 0 then return redis.error_reply(foreign) end
  has = newEpoch
else
  local n = #got[1] / 8
  if n < 6 + span or n > 7 + span + buckets or n % 1 ~= 0 then return redis.error_reply(foreign) end
  u = {read(doubles(n), got[1])}
  head, has, here, before, short, shortBefore = u[1], u[2], u[3], u[4], u[5], u[6]
  if head % 1 ~= 0 or head >= 2^53 or head <= -2^53 then return redis.error_reply(foreign) end
  at, last = 6 + span, n
  u[n + 1] = nil -- the slot after the last number
end

if head and current <= head - span then
  -- The clock was set back by the ring or more: all units that count or are yet to come move to the
  -- current bucket. Units that may still be spent by the old clock count once more ahead of it.
  local sum, unspent, far = 0, 0, 0
  for i = 7, last do
    sum = min(sum + u[i], 2^53)
    if i >= at and u[i] > 0 then
      unspent = min(unspent + u[i], 2^53)
      far = min(i - at + 1, buckets + 1, 2 * span - 1)
    end
  end
  drop = call('HKEYS', key)
  if has + newEpoch < 2^53 then
    has = has + newEpoch
  else
    has = has - (2^53 - 2) + newEpoch
  end
  head, here, before, short, shortBefore, sighting = nil, 0, 0, 0, 0, nil
  u, at, last = {}, span, span + far
  for i = 1, last do u[i] = 0 end
  u[at] = sum
  if unspent > 0 then u[last] = unspent end
elseif head and current <= head then
  if current < head then -- it was set back a little: head stays until the clock catches up
    current, passed = head, passed - (head - current) * width
  end
elseif head and current <= head + span + buckets then
  at = at + current - head
  for i = last + 1, at do u[i] = 0 end
  last = max(last, at)
  if current ~= head + 1 then here, short = 0, 0 end
  before, shortBefore, here, short = here, short, 0, 0
else
  u, at, last, here, before, short, shortBefore = {}, span, span, 0, 0, 0, 0
  for i = 1, span do u[i] = 0 end
end
local lasted, remembers = last, span + buckets
-- Members that are gone expire on time; their fields are deleted now and then.
if head and head ~= current and math.floor(head / remembers) ~= math.floor(current / remembers) then
  drop = {}
  local all = call('HGETALL', key)
  for i = 1, #all, 2 do
    if #all[i + 1] == 16 then
      local _, when = read('<dd', all[i + 1])
      if when < current - remembers then drop[#drop + 1] = all[i] end
    end
  end
end

local highest = 0
if sighting then
  if #sighting ~= 16 then return redis.error_reply(foreign) end
  local sent, when = read('<dd', sighting)
  if when >= current - remembers then highest = sent end
end
if seq > highest and epoch == has then
  local charges = more + 16 * backs
  for i = more, #numbers, 16 do
    local bucket, units = read('<dd', numbers, i)
    if i < charges then
      local b = bucket - current + at
      if b > at - span and b <= last then u[b] = max(0, u[b] - units) end
    else
      local b = min(bucket - current, 0) + at
      if b > at - span then u[b] = u[b] + units end
    end
  end
end

-- full is the sum of the fullest window of n buckets that contains u[i]. Windows that end after u[last] hold less than the one
-- that ends with it. (What a function is given costs less than what it finds around it.)
local function full(u, last, n, i)
  local sum = 0
  for j = i - n + 1, i do sum = sum + (u[j] or 0) end
  local most = sum
  for j = i + 1, last do
    if j >= i + n then break end
    sum = sum + u[j] - u[j - n]
    if sum > most then most = sum end
  end
  return most
end
-- opens is the first upcoming bucket that units fit: the one after the last window that holds more than room.
local function opens(u, last, n, at, room)
  local sum, i, fits = 0, at, at + 1
  for j = at - n + 1, at do sum = sum + u[j] end
  while i < last or sum > room and i < last + n do
    i = i + 1
    sum = sum + (u[i] or 0) - (u[i - n] or 0)
    if sum > room then fits = i + 1 end
  end
  return fits
end

local target = at
if ahead > current then target = at + min(ahead - current, buckets) end
local asks = need > 0 or want > 0
if asks and seen ~= current then here = here + 1 end
local active = max(here, before, 1)

local granted, left = 0, max(0, limit - full(u, last, span, target))
if asks and (epoch == 0 or epoch == has) then
  if need <= left then
    local sharers = active
    if shortBefore > 0 and target == at then sharers = min(active, max(shortBefore, short) + 1) end
    granted = max(need, min(want, math.floor(left / sharers)))
    if granted > 0 and granted < want and shortfall ~= current then short = short + 1 end
  elseif borrow > 0 and need <= limit then
    local i = opens(u, last, span, at, limit - need)
    if i <= at + buckets and (i - at) * width - passed < borrow then
      target, granted, left = i, need, limit - full(u, last, span, i)
    end
  end
end
if granted > 0 then
  for i = last + 1, target do u[i] = 0 end
  last = max(last, target)
  u[target] = u[target] + granted
end
left = left - granted

local free = 0
if limit > 0 and (target ~= at or left == 0) and full(u, last, span, at) >= limit then
  free = (opens(u, last, span, at, limit - 1) - at) * width - passed
end

local state = write(doubles(6 + span + last - at), current, has, here, before, short, shortBefore, unpack(u, at - span + 1, last))
if seq > highest then
  call('HSET', key, 'w', state, member, write('<dd', seq, current))
else
  call('HSET', key, 'w', state)
end
-- The key lives until bucket last+buckets+3 begins, when no window has counted its units for two buckets. That is
-- set again only where it has changed, or where the server's clock is behind: a key that was moved there has brought along
-- only what was left of its life.
if head ~= current or last > lasted or passed < 0 then
  call('PEXPIRE', key, string.format('%.0f', math.ceil(((last - at + buckets + 3) * width - passed) / 1000000)))
end
for i = 1, drop and #drop or 0 do
  if drop[i] ~= 'w' and drop[i] ~= member then call('HDEL', key, drop[i]) end
end
return write('<ddddddddd', granted, current - at + target, current, width - passed, left, free, active, now, has)
