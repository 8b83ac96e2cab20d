package penstockredis_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	penstockredis "github.com/penstock-go/penstock/cluster/redis"
	"github.com/penstock-go/penstock/cluster/redis/internal/server"
	"github.com/penstock-go/penstock/cluster/store"
	"github.com/penstock-go/penstock/core"
)

const kinds = `
flow:
- {id: turns, resource: turns, threshold: 5, behavior: throttle, cluster: {onFailure: closed}}
- {id: running, resource: running, threshold: 2, metric: concurrency, cluster: {onFailure: closed}}
isolation:
- {id: apart, resource: apart, threshold: 2, cluster: {onFailure: closed}}
hotspot:
- {id: values, resource: values, param: user, threshold: 3, interval: 2s, cluster: {onFailure: closed}}
`

// Two engines share the rules in a file, other than flow windows, over a real server, even after
// each of its replies took half a second. No assertion depends on the speed of the machine.
func TestRulesOfAllKinds(t *testing.T) {
	s := start(t)
	var slow atomic.Bool
	p, err := server.NewProxy(s.Addr, func([]byte) server.Fate {
		if slow.Load() {
			time.Sleep(500 * time.Millisecond)
		}
		return server.Pass
	})
	require.NoError(t, err)
	t.Cleanup(p.Close)
	t.Cleanup(func() { slow.Store(false) })
	set, err := api.ParseRules("rules.yaml", []byte("cluster: {redis: 'redis://"+p.Addr+"', namespace: kinds, members: 2}"+kinds))
	require.NoError(t, err)
	var guards []*api.Guard
	for range 2 {
		g, err := api.New(api.Config{Stores: map[string]func(string) (store.Store, error){
			"redis": func(url string) (store.Store, error) { return penstockredis.Open(url) },
		}})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, g.Close()) })
		require.NoError(t, g.LoadRules(set))
		guards = append(guards, g)
	}
	admitted := func(g *api.Guard, resource string) (entry api.Admitted, ok bool) {
		entry, err := g.Entry(t.Context(), resource, api.Param("user", "ann"))
		return entry, err == nil
	}
	until := func(what string, is func() bool) {
		t.Helper()
		require.Eventually(t, is, patience, time.Millisecond, what)
	}
	// store checks each engine's store state for every rule.
	store := func(says string) bool {
		for _, g := range guards {
			for _, r := range g.RuleStats() {
				if f, ok := r.Details.(core.SharedStats); ok && f.Store != says {
					return false
				}
			}
		}
		return true
	}

	// The calls that both engines together may make in the time passed.
	within := func(resource string, each int, atMost func(time.Duration) int) {
		t.Helper()
		n := make([]int, len(guards))
		begin := time.Now()
		until(resource, func() bool {
			least := each
			for i, g := range guards {
				if entry, ok := admitted(g, resource); ok {
					entry.Exit()
					n[i]++
				}
				least = min(least, n[i])
			}
			return least == each
		})
		assert.LessOrEqual(t, n[0]+n[1], atMost(time.Since(begin)), resource)
	}
	// While one engine has all permits the other has none. They expire after two seconds if the
	// machine is too busy to renew them; then the round starts again.
	permits := func(resource string) {
		t.Helper()
		until(resource, func() bool {
			begin := time.Now()
			var held []api.Admitted
			for range 100 {
				if entry, ok := admitted(guards[0], resource); ok {
					held = append(held, entry)
				}
			}
			entry, beyond := admitted(guards[1], resource)
			if beyond {
				entry.Exit()
			}
			passed := time.Since(begin)
			for _, entry := range held {
				entry.Exit()
			}
			if passed >= time.Second {
				return false
			}
			assert.LessOrEqual(t, len(held), 2, resource)
			if len(held) == 2 {
				assert.False(t, beyond, resource)
			}
			return len(held) == 2
		})
		until(resource, func() bool {
			entry, ok := admitted(guards[1], resource)
			if ok {
				entry.Exit()
			}
			return ok
		})
	}
	shared := func() {
		t.Helper()
		within("turns", 2, func(d time.Duration) int { return int(d/(200*time.Millisecond)) + 1 })
		within("values", 1, func(d time.Duration) int { return 3 * (int(d/(2*time.Second)) + 1) })
		permits("running")
		permits("apart")
	}
	shared()
	slow.Store(true)
	until("away", func() bool {
		for _, resource := range []string{"turns", "running", "apart", "values"} {
			for _, g := range guards {
				if entry, ok := admitted(g, resource); ok {
					entry.Exit()
				}
			}
		}
		return store("away")
	})
	slow.Store(false)
	back := time.Now()
	until("back", func() bool { return store("up") })
	t.Logf("back within %v", time.Since(back))
	shared()
}
