package penstockredis_test

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	penstockredis "github.com/penstock-go/penstock/cluster/redis"
	"github.com/penstock-go/penstock/cluster/store"
)

// Opening a store makes no network requests, so a process can start while the server is down.
func TestOpen(t *testing.T) {
	for _, url := range []string{
		"redis://127.0.0.1:1/3",
		"rediss://user:secret@127.0.0.1:1?skip_verify=true&timeout=50ms",
		"unix:///tmp/nobody.sock?db=1",
		"redis+cluster://127.0.0.1:1?addr=127.0.0.1:2",
		"rediss+cluster://127.0.0.1:1",
		"redis+sentinel://127.0.0.1:1/0?master_name=shop&password=secret",
		"rediss+sentinel://127.0.0.1:1/0?master_name=shop",
	} {
		s, err := penstockredis.Open(url)
		require.NoError(t, err, url)
		require.NoError(t, s.Close())
	}
}

// A URL that would repeat commands or block calls is rejected, with an error that doesn't quote the
// URL.
func TestRefusedURLs(t *testing.T) {
	for url, want := range map[string]string{
		"":                                   "the URL must begin with one of redis://, redis+cluster://, redis+sentinel://, rediss://,",
		"http://h":                           "the URL must begin with one of",
		"redis://secret:secret@h:%zz":        "the URL can't be parsed: percent-encode special characters in user and password",
		"redis://h?max_retries=3&a=secret":   "the URL must not set max_retries: commands are never retried: units given back would count twice",
		"redis+cluster://h?max_redirects=1":  "the URL must not set max_redirects: commands are never retried: units given back would count twice",
		"redis://h?read_timeout=3s":          "the URL must not set read_timeout: use timeout",
		"redis://h?dial_timeout=3s":          "the URL must not set dial_timeout: connections are made in the background",
		"redis+cluster://h?route_randomly=1": "the URL must not set route_randomly: limits are kept by masters",
		"redis://h?timeout=2s":               `the URL's timeout "2s" must be from 1ms to 1s`,
		"redis://h?timeout=20":               `the URL's timeout "20" must be from 1ms to 1s`,
		"redis://h/secret?timeout=20ms":      "the path of the URL must be the number of a database",
		"redis://h?timout=20ms":              "unexpected option: timout",
		"redis+sentinel://h":                 "the URL must name the master that the Sentinels watch, as master_name",
	} {
		_, err := penstockredis.Open(url)
		require.ErrorContains(t, err, want, url)
	}
	for _, url := range []string{"redis://user:secret@h:%zz", "redis://user:secret/secret@h", "redis://user:1/secret@h", "redis://user:1/secret/secret@h"} {
		_, err := penstockredis.Open(url)
		require.Error(t, err)
		assert.NotContains(t, err.Error(), "secret")
	}
}

// By default, go-redis sends a command up to four times, for up to five seconds.
func TestRefusedClients(t *testing.T) {
	c := redis.NewClient(&redis.Options{})
	defer c.Close()
	_, err := penstockredis.New(c)
	require.ErrorContains(t, err, "MaxRetries must be -1")
	require.ErrorContains(t, err, "ContextTimeoutEnabled must be set")
	require.ErrorContains(t, err, "must be from 1 ns to 1 s, not 5s")

	cc := redis.NewClusterClient(&redis.ClusterOptions{RouteRandomly: true})
	defer cc.Close()
	_, err = penstockredis.New(cc)
	require.ErrorContains(t, err, "MaxRedirects must be -1")
	require.ErrorContains(t, err, "ReadOnly")

	ring := redis.NewRing(&redis.RingOptions{})
	defer ring.Close()
	_, err = penstockredis.New(ring)
	require.ErrorContains(t, err, "a *redis.Ring is not supported")

	good := redis.NewClient(&redis.Options{MaxRetries: -1, ContextTimeoutEnabled: true, ReadTimeout: time.Second})
	defer good.Close()
	s, err := penstockredis.New(good)
	require.NoError(t, err)
	require.NoError(t, s.Close())
}

// Commands that were certainly not executed are distinguished from the others, in the wording of each
// version.
func TestExplained(t *testing.T) {
	for text, want := range map[string]error{
		"NOSCRIPT No matching script.": store.ErrNotExecuted,
		"MOVED 1 127.0.0.1:1":          store.ErrNotExecuted,
		"LOADING Redis is loading":     store.ErrNotExecuted,
		"CLUSTERDOWN Hash slot":        store.ErrNotExecuted,
		"READONLY You can't write":     store.ErrNotExecuted,
		"OOM command not allowed":      store.ErrNotExecuted,
		"WRONGTYPE Operation":          store.ErrForeign,
		"FOREIGN the key":              store.ErrForeign,
		"ERR Error running script (call to f_ab): @user_script:12: @user_script: 12: -OOM command not allowed when used memory > 'maxmemory'.": store.ErrNotExecuted,
		"ERR Error running script (call to f_ab): @user_script:12: WRONGTYPE Operation against a key holding the wrong kind of value":          store.ErrForeign,
		"ERR Error running script (call to f_ab): @user_script:12: attempt to index":                                                           nil,
		"ERR The user executing the script can't run this command or subcommand script: ab, on @user_script:6.":                                nil,
		"NOPERM User shop has no permissions to run the 'pexpire' command script: ab, on @user_script:6.":                                      nil,
		"NOPERM User shop has no permissions to run the 'evalsha' command":                                                                     store.ErrNotExecuted,
		"ERR max number of clients reached": nil,
	} {
		err := penstockredis.Explained(answer(text))
		require.ErrorContains(t, err, text)
		assert.Equal(t, errors.Is(want, store.ErrNotExecuted), errors.Is(err, store.ErrNotExecuted), text)
		assert.Equal(t, errors.Is(want, store.ErrForeign), errors.Is(err, store.ErrForeign), text)
	}
	assert.NotErrorIs(t, penstockredis.Explained(errors.New("OOM")), store.ErrNotExecuted, "not the server's word")
}

// answer is an error from a server.
type answer string

func (a answer) Error() string { return string(a) }
func (a answer) RedisError()   {}
