-- Presence: announces a member, and counts the members. See store.Presence.
--
-- KEYS[1] is a sorted set of members by expiry. '@' is not a member: its score is the time of the latest
-- command.
local key, member, expiry, leave = KEYS[1], ARGV[1], tonumber(ARGV[2]), ARGV[3] == '1'
local back = math.max(0, (number(redis.call('ZSCORE', key, '@')) or now) - now)
-- If the clock was set back, all expire earlier by the same amount.
local entries = {text(now), '@'}
if back > 0 then
  local all = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  for i = 1, #all, 2 do
    if all[i] ~= '@' then
      entries[#entries + 1] = text(all[i + 1] - back)
      entries[#entries + 1] = all[i]
    end
  end
end
if not leave then
  entries[#entries + 1] = text(now + expiry)
  entries[#entries + 1] = member
end
for i = 1, #entries, 1000 do
  redis.call('ZADD', key, unpack(entries, i, math.min(i + 999, #entries)))
end
if leave then redis.call('ZREM', key, member) end
redis.call('ZREMRANGEBYSCORE', key, '-inf', text(now))
local members = redis.call('ZCARD', key)
if members > 0 then
  redis.call('ZADD', key, text(now), '@')
  local lives = math.ceil(expiry / 1000)
  if redis.call('PTTL', key) < lives then redis.call('PEXPIRE', key, text(lives)) end
end
return {members, now}
