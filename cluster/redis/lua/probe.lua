-- Returns the commands of our scripts that the user may not run.
local hash, set = KEYS[1], KEYS[2]
local denied = {}
for _, command in ipairs({
  {'TIME'},
  {'HSET', hash, 'f', '1'}, {'PEXPIRE', hash, '1000'}, {'PTTL', hash}, {'HGET', hash, 'f'}, {'HMGET', hash, 'f'},
  {'HKEYS', hash}, {'HGETALL', hash}, {'HDEL', hash, 'f'},
  {'ZADD', set, '1', 'm'}, {'PEXPIRE', set, '1000'}, {'ZSCORE', set, 'm'}, {'ZCARD', set}, {'ZRANGE', set, '0', '-1'},
  {'ZRANGEBYSCORE', set, '0', '1'}, {'ZREM', set, 'm'}, {'ZREMRANGEBYSCORE', set, '0', '1'},
}) do
  local said = redis.pcall(unpack(command))
  if type(said) == 'table' and said.err then denied[#denied + 1] = string.lower(command[1]) .. ': ' .. said.err end
end
return denied
