package penstockredis

import (
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// ClockKey is the key with the time of a [Movable] store, in microseconds.
const ClockKey = "{penstock:test}clock"

// movableClock makes scripts use a clock that stands still until a test sets it. Keys expire by it.
const movableClock = `
local real, due = redis, '{penstock:test}due'
now = tonumber(real.call('GET', '` + ClockKey + `'))
for _, key in ipairs(KEYS) do
  local at = real.call('ZSCORE', due, key)
  if at and tonumber(at) <= now then
    real.call('DEL', key)
    real.call('ZREM', due, key)
  end
end
local redis = {error_reply = real.error_reply, call = function(name, key, ...)
  if name == 'PEXPIRE' then return real.call('ZADD', due, string.format('%.0f', now + ... * 1000), key) end
  if name == 'PTTL' then return math.floor(((tonumber(real.call('ZSCORE', due, key) or 0)) - now) / 1000) end
  return real.call(name, key, ...)
end}
`

var Packed = packed

// Patient returns a store with a timeout that is longer than any test.
func Patient(client redis.UniversalClient) *Store {
	s := &Store{client: client, timeout: time.Hour, scripts: makeScripts(clock)}
	if c, ok := client.(*redis.ClusterClient); ok {
		s.slots = newSlots(c)
	}
	return s
}

// Movable returns a [Patient] store that uses the clock under [ClockKey].
func Movable(client redis.UniversalClient) *Store {
	s := Patient(client)
	s.scripts = makeScripts(clock + movableClock)
	return s
}

// offsetClock makes scripts use the server's clock plus the offset under [ClockKey].
const offsetClock = `
now = now + (tonumber(redis.call('GET', '` + ClockKey + `') or '0'))
`

// Offset returns a store with that clock and the client's timeout.
func Offset(client *redis.Client) *Store {
	return &Store{client: client, timeout: client.Options().ReadTimeout, scripts: makeScripts(clock + offsetClock)}
}

// LookScript returns the time by that clock, head and the epoch.
const LookScript = `
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2] + (tonumber(redis.call('GET', '` + ClockKey + `') or '0'))
local window = redis.call('HGET', KEYS[1], 'w')
if not window then return {now, 0, 0} end
local head, epoch = struct.unpack('<dd', window)
return {now, head, epoch}
`

// Mistaken is like [Movable], but with a mistake in the script for windows.
func Mistaken(client redis.UniversalClient, old, mistake string) *Store {
	s := Movable(client)
	s.scripts.take = makeScript(clock+movableClock, mistaken(takeBody, old, mistake))
	return s
}

// MistakenTokens is like [Movable], but with a mistake in the script for token buckets.
func MistakenTokens(client redis.UniversalClient, old, mistake string) *Store {
	s := Movable(client)
	s.scripts.tokens = makeScript(clock+movableClock+text, mistaken(tokensBody, old, mistake))
	return s
}

func mistaken(script, old, mistake string) string {
	if strings.Count(script, old) != 1 {
		panic("the script must contain this once: " + old)
	}
	return strings.Replace(script, old, mistake, 1)
}

var SlotOf = slotOf

var Explained = explained

// AskForever removes the timeout from reads of the slots.
func (s *Store) AskForever() { s.slots.timeout = 1 << 60 }
