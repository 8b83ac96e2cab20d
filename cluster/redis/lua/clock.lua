-- What all scripts begin with: the time, in microseconds since 1970, and integers as text.
-- Numbers are integers below 2^53. Lua's own conversion would cut them off at 14 digits.
local function text(n) return string.format('%.0f', n) end
local function number(s) return s and tonumber(s) end
local function foreign() return redis.error_reply('FOREIGN the key holds a value that is not of this library') end
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
