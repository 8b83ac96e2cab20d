package penstockredis

import (
	"context"
	_ "embed" // the probe's script
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

//go:embed lua/probe.lua
var probeText string

// Probe checks that the server, or each master of a cluster, can keep limits. The error has a
// sentence for each problem: a version before 5, a policy that evicts keys, commands that the user
// may not run, scripts that don't run, or a server that is down. Probe loads the scripts, and
// writes its own keys, which expire within a second.
func (s *Store) Probe(ctx context.Context) error {
	problems, err := s.probeScripts(ctx)
	if err != nil {
		return err // all other requests would fail too
	}
	if s.slots == nil {
		return errors.Join(append(problems, s.probeServer(ctx, s.client)...)...)
	}
	found := make(chan error)
	go func() {
		defer close(found)
		recovered := func() {
			if reason := recover(); reason != nil { // in a hook of the client
				found <- fmt.Errorf("recovered from a panic: %v", reason)
			}
		}
		defer recovered()
		err := s.slots.cluster.ForEachMaster(ctx, func(ctx context.Context, server *redis.Client) error {
			defer recovered()
			for _, err := range s.probeServer(ctx, server) {
				found <- fmt.Errorf("%s: %w", server.Options().Addr, err)
			}
			return nil
		})
		if err != nil {
			found <- fmt.Errorf("the cluster's servers are unknown: %w", err)
		}
	}()
	for err := range found {
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// probeScripts tries each command that the scripts use. The error means that there was no
// connection.
func (s *Store) probeScripts(ctx context.Context) (problems []error, err error) {
	key := "{penstock:probe:" + strconv.FormatUint(rand.Uint64(), 36) + "}"
	denied, err := s.client.Eval(ctx, probeText, []string{key, key + ":set"}).StringSlice()
	switch word := wordOf(err); {
	case err == nil:
	case word == "NOAUTH", word == "WRONGPASS", unsent(err), isAnswer(err) && strings.Contains(err.Error(), "DB index"):
		return nil, explained(err)
	default:
		return []error{fmt.Errorf("scripts don't run: %w", explained(err))}, nil
	}
	for _, command := range denied {
		problems = append(problems, fmt.Errorf("scripts may not run %s: see the list in docs/cluster.md", command))
	}
	return problems, nil
}

// probeServer checks one server, and loads the scripts.
func (s *Store) probeServer(ctx context.Context, server redis.Cmdable) (problems []error) {
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	for _, script := range []script{s.scripts.take, s.scripts.turn, s.scripts.permits, s.scripts.presence} {
		if err := server.ScriptLoad(ctx, script.text).Err(); err != nil {
			wrong("scripts can't be loaded: %w", explained(err))
			break
		}
	}
	// A user that may load scripts may not be allowed to run them. This run changes nothing
	// visible.
	if err := server.EvalSha(ctx, s.scripts.presence.sha, nil).Err(); wordOf(err) == "NOPERM" {
		wrong("scripts don't run: %w", explained(err))
	}
	text, err := server.Info(ctx).Result()
	if err != nil {
		wrong("INFO failed, so version and eviction policy are unknown: %w", explained(err))
		return problems
	}
	info := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	version, _, _ := strings.Cut(info["redis_version"], ".")
	if n, err := strconv.Atoi(version); err != nil || n < 5 {
		wrong("the version is %q: 5.0 or later is needed", info["redis_version"])
	}
	if policy := info["maxmemory_policy"]; policy != "noeviction" {
		wrong("maxmemory-policy is %q, which evicts counters early and so lifts limits: "+
			"set noeviction", policy)
	}
	if info["role"] == "slave" {
		wrong("the server is a replica: limits are kept by masters")
	}
	if s.slots == nil && info["cluster_enabled"] == "1" {
		wrong("the server is one of a Redis Cluster: use redis+cluster:// or a *redis.ClusterClient")
	}
	return problems
}
