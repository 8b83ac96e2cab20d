// Compare measures several ways to keep a limit in Redis, on one server and in one run:
//
//	make cluster-compare
//
// It starts its own server. With -write it updates the table in docs/cluster.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/cluster"
	penstockredis "github.com/penstock-go/penstock/cluster/redis"
	"github.com/penstock-go/penstock/cluster/redis/internal/server"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/stat"
)

const (
	members = 8
	workers = 8 // per member
	limit   = 5000
	offered = 3 * limit // per second, during a burst
	// A burst lasts from burst/2 before a full second to burst/2 after it, every two seconds.
	burst = 800 * time.Millisecond
)

func main() {
	bursts := flag.Int("bursts", 5, "how many bursts each way gets; 0 measures only what many rules cost")
	write := flag.Bool("write", false, "write the table into docs/cluster.md")
	flag.Parse()
	cost, err := load()
	if err != nil {
		log.Fatal(err)
	}
	if *bursts == 0 {
		fmt.Print(cost)
		return
	}
	table, err := run(*bursts)
	if err != nil {
		log.Fatal(err)
	}
	table += "\n" + cost
	fmt.Print(table)
	if *write {
		if err := put("docs/cluster.md", table); err != nil {
			log.Fatal(err)
		}
	}
}

// way is one way to keep the limit.
type way struct {
	name string
	// member returns the function that decides a call for one member.
	member func(addr string, i int) (admit func(ctx context.Context) bool, leave func())
}

var ways = []way{
	{"a key per second, `INCR`", naive},
	{"Envoy's ratelimit: `INCRBY` and `EXPIRE`, full keys remembered", envoy},
	{"GCRA: one timestamp, a script per call", gcra},
	{"Penstock: a strict window of 10 buckets, leased", penstock},
}

func run(bursts int) (string, error) {
	dir, err := os.MkdirTemp("", "compare")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	s, err := server.Start(dir)
	if err != nil {
		return "", err
	}
	defer s.Kill()
	var b strings.Builder
	fmt.Fprintf(&b, "| | most admitted in a second | calls admitted | commands per call, including commands in scripts | processor time of Redis per call | duration of a call, median and 99th percentile | keys afterwards |\n|---|---|---|---|---|---|---|\n")
	for _, w := range ways {
		row, err := measure(w, s.Addr, bursts)
		if err != nil {
			return "", err
		}
		b.WriteString(row)
	}
	fmt.Fprintf(&b, "\n%d members with %d goroutines each, a limit of %d per second, %d bursts of %v at %d per second, the edge of a second in the middle of each. Redis %s, %d processors that client and server share, %s.\n",
		members, workers, limit, bursts, burst, offered, version(s.Addr), runtime.NumCPU(), runtime.Version())
	return b.String(), nil
}

func client(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ContextTimeoutEnabled: true, Protocol: 2, PoolSize: workers, DisableIdentity: true})
}

func version(addr string) string {
	c := client(addr)
	defer c.Close()
	return c.InfoMap(context.Background(), "server").Item("Server", "redis_version")
}

// measure runs the bursts, and returns a row of the table.
func measure(w way, addr string, bursts int) (string, error) {
	ctx := context.Background()
	ask := client(addr)
	defer ask.Close()
	if err := ask.FlushAll(ctx).Err(); err != nil {
		return "", err
	}
	var mu sync.Mutex
	var admitted []time.Time
	var took []time.Duration
	var admits []func(context.Context) bool
	var leaves []func()
	for i := range members {
		admit, leave := w.member(addr, i)
		admits, leaves = append(admits, admit), append(leaves, leave)
		admit(ctx) // opens connections
	}
	time.Sleep(time.Second)
	before := usage(ask)
	for range bursts {
		now := time.Now()
		begin := now.Truncate(2 * time.Second).Add(3*time.Second - burst/2)
		if begin.Sub(now) > 2*time.Second {
			begin = begin.Add(-2 * time.Second)
		}
		time.Sleep(time.Until(begin))
		var all sync.WaitGroup
		for _, admit := range admits {
			for range workers {
				all.Go(func() {
					var ok []time.Time
					var each []time.Duration
					for n := 0; ; n++ {
						due := begin.Add(time.Duration(n) * time.Second * members * workers / offered)
						if due.Sub(begin) >= burst {
							break
						}
						time.Sleep(time.Until(due))
						start := time.Now()
						if start.Sub(begin) >= burst {
							break // it can't keep up
						}
						pass := admit(ctx)
						end := time.Now()
						each = append(each, end.Sub(start))
						if pass {
							ok = append(ok, end)
						}
					}
					mu.Lock()
					defer mu.Unlock()
					admitted, took = append(admitted, ok...), append(took, each...)
				})
			}
		}
		all.Wait()
	}
	after := usage(ask)
	keys := ask.DBSize(ctx).Val()
	for _, leave := range leaves {
		leave()
	}
	slices.SortFunc(admitted, time.Time.Compare)
	slices.Sort(took)
	most, first := 0, 0
	for i := range admitted {
		for admitted[i].Sub(admitted[first]) >= time.Second {
			first++
		}
		most = max(most, i-first+1)
	}
	calls := float64(len(took))
	return fmt.Sprintf("| %s | %d | %.0f %% | %.2f | %.1f µs | %v, %v | %d |\n", w.name, most, 100*float64(len(admitted))/calls,
		(after.commands-before.commands)/calls, (after.seconds-before.seconds)*1e6/calls,
		took[len(took)/2].Round(time.Microsecond/10), took[len(took)*99/100].Round(time.Microsecond), keys), nil
}

// use is the server's work.
type use struct{ commands, seconds float64 }

func usage(c *redis.Client) use {
	info := c.InfoMap(context.Background(), "everything").Val()
	number := func(section, name string) float64 {
		n, _ := strconv.ParseFloat(info[section][name], 64)
		return n
	}
	return use{number("Stats", "total_commands_processed"), number("CPU", "used_cpu_user") + number("CPU", "used_cpu_sys")}
}

// naive counts in a key named after the second, without an expiry.
func naive(addr string, _ int) (func(context.Context) bool, func()) {
	c := client(addr)
	return func(ctx context.Context) bool {
		n, err := c.Incr(ctx, "orders-"+time.Now().Format("2006-1-2-15-4-5")).Result()
		return err == nil && n <= limit
	}, func() { _ = c.Close() }
}

// envoy works like envoyproxy/ratelimit: it increments a key of the window and sets its expiry in
// the same round trip. Two settings differ from the defaults, in its favour: windows seen full are
// remembered (LOCAL_CACHE_SIZE_IN_BYTES is 0 by default), and keys live no longer than a window
// (EXPIRATION_JITTER_MAX_SECONDS is 300 by default, so they live up to five minutes longer).
func envoy(addr string, _ int) (func(context.Context) bool, func()) {
	c := client(addr)
	var mu sync.Mutex
	full := int64(0)
	return func(ctx context.Context) bool {
		second := time.Now().Unix()
		mu.Lock()
		over := full == second
		mu.Unlock()
		if over {
			return false
		}
		key := fmt.Sprintf("orders_%d", second)
		pipe := c.Pipeline()
		n := pipe.IncrBy(ctx, key, 1)
		pipe.Expire(ctx, key, time.Second)
		if _, err := pipe.Exec(ctx); err != nil {
			return false
		}
		if n.Val() > limit {
			mu.Lock()
			full = second
			mu.Unlock()
		}
		return n.Val() <= limit
	}, func() { _ = c.Close() }
}

// gcraScript keeps a rate as one number: the theoretical arrival time of the next call.
var gcraScript = redis.NewScript(`
local clock = redis.call('TIME')
local now = (clock[1] - 1483228800) + clock[2] / 1000000
local interval, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local tat = math.max(now, tonumber(redis.call('GET', KEYS[1]) or now))
local new = tat + interval
if now < new - interval * burst then return 0 end
redis.call('SET', KEYS[1], new, 'EX', math.ceil(new - now))
return 1
`)

func gcra(addr string, _ int) (func(context.Context) bool, func()) {
	c := client(addr)
	return func(ctx context.Context) bool {
		n, err := gcraScript.Run(ctx, c, []string{"orders"}, 1.0/limit, limit).Int()
		return err == nil && n == 1
	}, func() { _ = c.Close() }
}

func penstock(addr string, _ int) (func(context.Context) bool, func()) {
	store, err := penstockredis.Open("redis://" + addr)
	if err != nil {
		log.Fatal(err)
	}
	clock := clocks.NewSystem()
	m, err := sharing.Join(cluster.Config{Store: store, Clock: clock, Namespace: "compare", Members: members})
	if err != nil {
		log.Fatal(err)
	}
	w, err := m.Window("orders", sharing.WindowConfig{
		Shape: stat.Shape{Interval: time.Second, Buckets: 10, Strict: true}, Threshold: limit,
		Rule: cluster.Rule{Scope: cluster.Global, OnFailure: cluster.Closed},
	})
	if err != nil {
		log.Fatal(err)
	}
	return func(ctx context.Context) bool {
			now := clock.Now()
			if _, ok := w.TryAdd(0, now, 1); ok {
				return true
			}
			if w.Ask(now, 1) != sharing.NeedsMore {
				return false
			}
			need := []sharing.Need{{Limit: w, Units: 1}}
			return m.Fetch(ctx, w.Timeout(), need) == nil && need[0].Got
		}, func() {
			m.Close()
			_ = store.Close()
		}
}

const (
	begins = "<!-- the table that make cluster-compare writes -->\n"
	ends   = "<!-- its end -->\n"
)

// put replaces the table in a page of the repository.
func put(page, table string) error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	for {
		file := filepath.Join(dir, page)
		text, err := os.ReadFile(file)
		if err != nil {
			if dir == filepath.Dir(dir) {
				return err
			}
			dir = filepath.Dir(dir)
			continue
		}
		before, rest, ok := strings.Cut(string(text), begins)
		_, after, ok2 := strings.Cut(rest, ends)
		if !ok || !ok2 {
			return fmt.Errorf("%s has no place for the table", file)
		}
		return os.WriteFile(file, []byte(before+begins+"\n"+table+"\n"+ends+after), 0o644)
	}
}
