package penstockredis

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/cluster/store"
)

const (
	// defaultTimeout is the maximum duration of a command, unless the URL sets another; members
	// give up earlier, according to their rules.
	defaultTimeout = cluster.MaxTimeout
	// longest is the limit for a connection made in the background, and for a command that no call
	// waits for. Everything else ends with its context before that.
	longest = time.Second
)

// schemes are the supported schemes of URLs.
var schemes = map[string]func(url string) (redis.UniversalClient, time.Duration, error){
	"redis":           openSingle,
	"rediss":          openSingle,
	"unix":            openSingle,
	"redis+cluster":   openCluster,
	"rediss+cluster":  openCluster,
	"redis+sentinel":  openSentinel,
	"rediss+sentinel": openSentinel,
}

// ours are the parameters of go-redis that a URL must not set, with reasons.
var ours = map[string]string{
	"max_retries":               "commands are never retried: units given back would count twice",
	"max_redirects":             "commands are never retried: units given back would count twice",
	"min_retry_backoff":         "commands are never retried",
	"max_retry_backoff":         "commands are never retried",
	"dialer_retries":            "calls don't wait for an unreachable server",
	"dialer_retry_timeout":      "calls don't wait for an unreachable server",
	"dial_timeout":              "connections are made in the background",
	"read_timeout":              "use timeout",
	"write_timeout":             "use timeout",
	"pool_timeout":              "use timeout",
	"read_only":                 "limits are kept by masters",
	"replica_only":              "limits are kept by masters",
	"route_by_latency":          "limits are kept by masters",
	"route_randomly":            "limits are kept by masters",
	"use_disconnected_replicas": "limits are kept by masters",
}

// Stores returns the schemes of URLs for api.Config.Stores, each with [Open].
func Stores() map[string]func(url string) (store.Store, error) {
	stores := map[string]func(string) (store.Store, error){}
	for scheme := range schemes {
		stores[scheme] = func(url string) (store.Store, error) { return Open(url) }
	}
	return stores
}

// Open returns a store by its URL. It makes no network requests, so it works while the server is
// down.
//
//	redis://user:password@host:6379/0           one server
//	rediss://...                                by TLS
//	unix:///run/redis.sock                      by a socket
//	redis+cluster://host:6379?addr=host2:6379   a Redis Cluster, by some of its servers
//	redis+sentinel://host:26379/0?master_name=shop&addr=host2:26379&password=...
//	                                            the master that Sentinels name
//
// URLs may have any parameter that go-redis reads, except for retries, redirects, timeouts and
// replicas. The parameter timeout is the maximum duration of a command, from 1ms to 1s; the default
// is 1s, as members give up earlier anyway. Errors never quote the URL, which may contain a
// password.
func Open(address string) (*Store, error) {
	scheme, _, _ := strings.Cut(address, ":")
	open := schemes[scheme]
	if open == nil {
		return nil, fmt.Errorf("penstockredis: the URL must begin with one of %s",
			strings.Join(slices.Sorted(maps.Keys(schemes)), "://, ")+"://")
	}
	client, timeout, err := open(address)
	if err != nil {
		return nil, fmt.Errorf("penstockredis: %w", err)
	}
	s, err := New(client)
	if err != nil {
		_ = client.Close()
		return nil, err
	}
	s.owned, s.timeout = true, timeout
	return s, nil
}

// plain removes our parameters from a URL, and returns one that go-redis reads.
func plain(address string) (string, time.Duration, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", 0, errors.New("the URL can't be parsed: " +
			"percent-encode special characters in user and password")
	}
	query := u.Query()
	for name := range query {
		if why := ours[name]; why != "" {
			return "", 0, fmt.Errorf("the URL must not set %s: %s", name, why)
		}
	}
	timeout := defaultTimeout
	if text := query.Get("timeout"); text != "" {
		timeout, err = time.ParseDuration(text)
		if err != nil || timeout < time.Millisecond || timeout > time.Second {
			return "", 0, fmt.Errorf("the URL's timeout %q must be from 1ms to 1s", text)
		}
	}
	query.Del("timeout")
	u.RawQuery = query.Encode()
	u.Scheme, _, _ = strings.Cut(u.Scheme, "+")
	return u.String(), timeout, nil
}

// unread is the error for a URL that go-redis can't read. If a password contains a slash, the
// remainder of it becomes part of the path.
func unread(err error) error {
	for _, quoting := range []string{"database number", "URL path"} {
		if strings.Contains(err.Error(), quoting) {
			return errors.New("the path of the URL must be the number of a database, as in redis://host:6379/0")
		}
	}
	return err
}

var quiet = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}

func openSingle(address string) (redis.UniversalClient, time.Duration, error) {
	address, timeout, err := plain(address)
	if err != nil {
		return nil, 0, err
	}
	o, err := redis.ParseURL(address)
	if err != nil {
		return nil, 0, unread(err)
	}
	o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled = -1, 1, true
	o.ReadTimeout, o.WriteTimeout, o.PoolTimeout, o.DialTimeout = longest, longest, longest, longest
	o.MaintNotificationsConfig, o.DisableIdentity = quiet, true
	o.Protocol, o.PipelinePoolSize = max(o.Protocol, 2), -1
	return redis.NewClient(o), timeout, nil
}

func openCluster(address string) (redis.UniversalClient, time.Duration, error) {
	address, timeout, err := plain(address)
	if err != nil {
		return nil, 0, err
	}
	o, err := redis.ParseClusterURL(address)
	if err != nil {
		return nil, 0, unread(err)
	}
	o.MaxRetries, o.MaxRedirects, o.DialerRetries, o.ContextTimeoutEnabled = -1, -1, 1, true
	o.ReadTimeout, o.WriteTimeout, o.PoolTimeout, o.DialTimeout = longest, longest, longest, longest
	o.MaintNotificationsConfig, o.DisableIdentity = quiet, true
	o.Protocol, o.PipelinePoolSize = max(o.Protocol, 2), -1
	return redis.NewClusterClient(o), timeout, nil
}

func openSentinel(address string) (redis.UniversalClient, time.Duration, error) {
	address, timeout, err := plain(address)
	if err != nil {
		return nil, 0, err
	}
	o, err := redis.ParseFailoverURL(address)
	if err != nil {
		return nil, 0, unread(err)
	}
	if o.MasterName == "" {
		return nil, 0, errors.New("the URL must name the master that the Sentinels watch, as master_name")
	}
	o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled = -1, 1, true
	o.ReadTimeout, o.WriteTimeout, o.PoolTimeout, o.DialTimeout = longest, longest, longest, longest
	o.DisableIdentity = true
	o.Protocol, o.PipelinePoolSize = max(o.Protocol, 2), -1
	return redis.NewFailoverClient(o), timeout, nil
}
