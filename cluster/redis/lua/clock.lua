-- The prelude of all scripts: the time, in microseconds since 1970.
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local foreign = 'FOREIGN the key holds a value that Penstock did not write'
