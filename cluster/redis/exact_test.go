package penstockredis_test

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/cluster"
	penstockredis "github.com/penstock-go/penstock/cluster/redis"
	"github.com/penstock-go/penstock/cluster/redis/internal/server"
	"github.com/penstock-go/penstock/cluster/store"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/internal/proof/chance"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/stat"
)

// Processes at full speed share limits on one Redis, while processes and server fail in many ways.
// Each process keeps reading the current bucket in the store's time, and records the units it
// admitted between two reads. Only units that lie wholly inside a window count against it, so a
// slow machine makes the check less sensitive, but not wrong. `make cluster-exact` runs for longer.
//
// Some calls settle up to two windows later: they give back some of their units, and record only the
// others, or are charged more. So no window holds more than the limit of units that calls used within
// their reservations.

var (
	exactFor = flag.Duration("exact.for", 0, "how long each part of TestExact takes; 0 means some rounds")
	exactAll = flag.Bool("exact.all", false, "test all limits at once, not only a few")
)

// exactChild is the environment variable with the job of a child process of TestExact.
const exactChild = "PENSTOCK_EXACT"

// exactRule describes one limit in the test.
type exactRule struct {
	Name  string
	Limit float64
	Shape stat.Shape
}

func exactRules(r *rand.Rand) (rules []exactRule) {
	for _, limit := range []float64{10, 1000, 100_000} {
		for _, buckets := range []int{1, 2, 10} {
			for _, strict := range []bool{false, true} {
				rules = append(rules, exactRule{
					Name: fmt.Sprintf("%v per second, %d buckets, strict %t", limit, buckets, strict), Limit: limit,
					Shape: stat.Shape{Interval: time.Second, Buckets: buckets, Strict: strict},
				})
			}
		}
	}
	if !*exactAll {
		r.Shuffle(len(rules), func(i, j int) { rules[i], rules[j] = rules[j], rules[i] })
		rules = rules[:5]
	}
	return rules
}

// exactJob is the job of a process.
type exactJob struct {
	Store, Look string // addresses of the server
	Rules       []exactRule
	Seed        uint64
}

// admitted is the units that a process admitted between two reads of a limit, at which the buckets
// From and To were current, both in one epoch.
type admitted struct {
	Rule            int
	Epoch, From, To int64
	Units           int64
}

// TestExactChild runs in the child processes of TestExact.
func TestExactChild(t *testing.T) {
	text := os.Getenv(exactChild)
	if text == "" {
		t.Skip("it is started by TestExact")
	}
	var job exactJob
	require.NoError(t, json.Unmarshal([]byte(text), &job))
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // until the parent says so or dies
		stop()
	}()
	seen := &rings{Store: penstockredis.Offset(quick(t, job.Store)), rings: map[exactShape]ringKey{}}
	clock := clocks.NewSystem()
	m, err := sharing.Join(cluster.Config{Store: seen, Clock: clock, Namespace: "exact"})
	require.NoError(t, err)
	look := &looker{rings: seen, rules: make([]looked, len(job.Rules)), to: quick(t, job.Look)}
	var all sync.WaitGroup
	for i, rule := range job.Rules {
		w, err := m.Window(rule.Name, sharing.WindowConfig{
			Shape: rule.Shape, Threshold: rule.Limit, Rule: cluster.Rule{Scope: cluster.Global, OnFailure: cluster.Closed},
		})
		require.NoError(t, err)
		look.rules[i].rule = rule
		for lane := range uint32(2) {
			r := rand.New(rand.NewPCG(job.Seed, uint64(i)<<1|uint64(lane)))
			x := &worker{m: m, w: w, clock: clock, look: look, mine: &look.rules[i], lane: lane, r: r}
			all.Go(func() { x.run(ctx) })
		}
	}
	out := bufio.NewWriter(os.Stdout)
	lines := json.NewEncoder(out)
	for ctx.Err() == nil {
		look.again(ctx)
		for i := range look.rules {
			for _, a := range look.rules[i].settled(look.number.Load()) {
				a.Rule = i
				_ = lines.Encode(a)
			}
		}
		_ = out.Flush()
		_ = clock.Sleep(ctx, 2*time.Millisecond)
	}
	all.Wait()
	m.Close()
}

// quick returns a client like [penstockredis.Open]'s, but with a short wait for connections.
func quick(t testing.TB, addr string) *redis.Client {
	c := redis.NewClient(&redis.Options{
		Addr: addr, MaxRetries: -1, ContextTimeoutEnabled: true, Protocol: 2, PipelinePoolSize: -1, DialerRetries: 1,
		ReadTimeout: time.Second, WriteTimeout: time.Second, PoolTimeout: time.Second, DialTimeout: time.Second,
	})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// rings is a store that remembers the key of each window.
type rings struct {
	*penstockredis.Store
	mu    sync.Mutex
	rings map[exactShape]ringKey
}

type exactShape struct {
	limit int64
	shape stat.Shape
}

type ringKey struct {
	key  string
	ring store.Ring
}

func (s *rings) Do(ctx context.Context, batch []store.Command) {
	s.mu.Lock()
	for _, c := range batch {
		if t, ok := c.(*store.Take); ok {
			s.rings[exactShape{t.Limit, t.Shape}] = ringKey{t.Key, t.Ring}
		}
	}
	s.mu.Unlock()
	s.Store.Do(ctx, batch)
}

func (s *rings) of(rule exactRule) (ringKey, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, ok := s.rings[exactShape{int64(rule.Limit), rule.Shape}]
	return k, ok
}

// looker keeps reading all limits of a process.
type looker struct {
	rings  *rings
	to     *redis.Client
	number atomic.Int64 // completed reads
	rules  []looked
}

// looked holds the reads of a limit, and the units admitted between them.
type looked struct {
	rule exactRule

	mu    sync.Mutex
	looks []seenBucket // by number, starting at first
	first int64
	notes []note
}

// seenBucket is the result of one read: the current bucket, and the epoch, or 0 if unknown.
type seenBucket struct{ bucket, epoch int64 }

// note is the units admitted after read from ended and before read to+2 began.
type note struct{ from, to, units int64 }

// again reads once more.
func (l *looker) again(ctx context.Context) {
	seen := make([]seenBucket, len(l.rules))
	pipe := l.to.Pipeline()
	answers := make([]*redis.Cmd, len(l.rules))
	keys := make([]ringKey, len(l.rules))
	for i := range l.rules {
		if k, ok := l.rings.of(l.rules[i].rule); ok {
			keys[i], answers[i] = k, pipe.Eval(ctx, penstockredis.LookScript, []string{k.key})
		}
	}
	_, _ = pipe.Exec(ctx)
	for i, answer := range answers {
		if answer == nil {
			continue
		}
		n, err := answer.Int64Slice()
		if err != nil || len(n) != 3 {
			continue
		}
		current := keys[i].ring.Bucket(n[0] * 1000)
		switch {
		case n[2] == 0, current <= n[1]-keys[i].ring.Span(): // no key, or all of it is about to be moved
		default:
			seen[i] = seenBucket{bucket: max(current, n[1]), epoch: n[2]}
		}
	}
	for i := range l.rules {
		r := &l.rules[i]
		r.mu.Lock()
		if len(r.looks) == 0 {
			r.first = l.number.Load() + 1
		}
		r.looks = append(r.looks, seen[i])
		r.mu.Unlock()
	}
	l.number.Add(1)
}

func (r *looked) note(from, to, units int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.notes) - 1; n >= 0 && r.notes[n].from == from && r.notes[n].to == to {
		r.notes[n].units += units
		return
	}
	r.notes = append(r.notes, note{from, to, units})
}

// settled returns the notes between reads that are complete, after a number of reads.
func (r *looked) settled(looks int64) (done []admitted) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rest := r.notes[:0]
	oldest := looks
	for _, n := range r.notes {
		if n.to+2 > looks {
			rest = append(rest, n)
			oldest = min(oldest, n.from)
			continue
		}
		if n.from < r.first {
			continue
		}
		from, to := r.looks[n.from-r.first], r.looks[n.to+2-r.first]
		if from.epoch == 0 || from.epoch != to.epoch {
			continue
		}
		a := admitted{Epoch: from.epoch, From: from.bucket, To: to.bucket, Units: n.units}
		if last := len(done) - 1; last >= 0 && done[last].Epoch == a.Epoch && done[last].From == a.From && done[last].To == a.To {
			done[last].Units += a.Units
		} else {
			done = append(done, a)
		}
	}
	r.notes = rest
	// A worker that has read the number of reads and recorded nothing yet may be far behind: its
	// note is then lost.
	if forget := oldest - 1000 - r.first; forget > 0 {
		r.looks = slices.Delete(r.looks, 0, int(forget))
		r.first += forget
	}
	return done
}

// settlement is the end of a call that used other than it reserved: back units fewer, or over more.
type settlement struct {
	at, token, back, over int64
}

// settle takes the settlements that are due.
func (x *worker) settle(now int64) {
	x.open = slices.DeleteFunc(x.open, func(s settlement) bool {
		switch {
		case s.at > now:
			return false
		case s.over > 0:
			x.w.Charge(now, s.over)
		default:
			x.w.Cancel(s.token, s.back)
		}
		return true
	})
}

// use returns how many of the n units that a call got it uses, and settles it later.
func (x *worker) use(now, token, n int64) int64 {
	if x.r.IntN(4) > 0 || len(x.open) > 1000 {
		return n
	}
	s := settlement{at: now + x.r.Int64N(2*int64(x.mine.rule.Shape.Interval)), token: token, back: x.r.Int64N(n + 1)}
	if s.back == 0 {
		s.over = int64(max(0, x.r.IntN(20)-15))
	}
	x.open = append(x.open, s)
	return n - s.back
}

// worker makes calls on one limit as fast as it can.
type worker struct {
	open  []settlement
	m     *sharing.Member
	w     *sharing.Window
	clock *clocks.System
	look  *looker
	mine  *looked
	lane  uint32
	r     *rand.Rand
}

func (x *worker) run(ctx context.Context) {
	for ctx.Err() == nil {
		x.settle(x.clock.Now())
		n, first := int64(1), x.r.IntN(32) == 0
		if x.r.IntN(8) == 0 {
			n += x.r.Int64N(5)
		}
		before := x.look.number.Load()
		now := x.clock.Now()
		token, ok := x.w.TryAdd(x.lane, now, n)
		switch {
		case ok && x.r.IntN(16) == 0:
			x.w.Cancel(token, n)
		case ok:
			x.mine.note(before, x.look.number.Load(), x.use(now, token, n))
		case first || x.w.Ask(now, n) == sharing.NeedsMore:
			x.fetch(ctx, n, first)
		default:
			_ = x.clock.Sleep(ctx, 200*time.Microsecond)
		}
	}
}

func (x *worker) fetch(ctx context.Context, n int64, first bool) {
	need := []sharing.Need{{Limit: x.w, Units: n}}
	if first {
		need[0].MaxWait = x.mine.rule.Shape.Interval
	}
	if x.m.Fetch(ctx, x.w.Timeout(), need) != nil || !need[0].Got {
		return
	}
	if need[0].Wait > 0 {
		_ = x.clock.Sleep(ctx, need[0].Wait)
	}
	before := x.look.number.Load()
	if !x.w.Holds(x.clock.Now(), need[0].Token) || ctx.Err() != nil {
		x.w.Cancel(need[0].Token, n)
		return
	}
	x.mine.note(before, x.look.number.Load(), x.use(x.clock.Now(), need[0].Token, n))
}

// exactly runs eight processes while trouble happens a number of times, or for -exact.for if that
// is longer, and returns the most units in one window for each limit.
func exactly(t *testing.T, rounds int, trouble func(x *exactStage)) []int64 {
	seed := *chance.Seed
	t.Logf("-seed=%d", seed)
	x := &exactStage{T: t, r: rand.New(rand.NewPCG(seed, 0)), server: start(t), sums: map[admitted]int64{}}
	x.client = patient(t, x.server)
	for i := range 3 {
		r, mu := rand.New(rand.NewPCG(seed, uint64(10+i))), new(sync.Mutex)
		p, err := server.NewProxy(x.server.Addr, func([]byte) server.Fate {
			mu.Lock()
			defer mu.Unlock()
			switch n := r.IntN(200); {
			case i == 1 && n == 0:
				return server.Drop
			case i == 1 && n < 4:
				return server.Lose
			case i == 2 && n < 10:
				return server.Repeat
			}
			return server.Pass
		})
		require.NoError(t, err)
		t.Cleanup(p.Close)
		x.ways = append(x.ways, p.Addr)
	}
	x.rules = exactRules(x.r)
	for range 8 {
		x.processes = append(x.processes, x.process())
	}
	begin := time.Now()
	for round := 0; round < rounds || time.Since(begin) < *exactFor || x.units() == 0; round++ { // go test's limit ends it if nothing is ever admitted
		trouble(x)
		time.Sleep(time.Duration(x.r.Int64N(int64(200 * time.Millisecond))))
	}
	for _, p := range x.processes {
		p.end()
	}
	x.all.Wait()
	return x.most()
}

// exactStage is a run of the test.
type exactStage struct {
	*testing.T
	r         *rand.Rand
	server    *server.Server
	client    *redis.Client
	ways      []string
	rules     []exactRule
	processes []*process
	all       sync.WaitGroup

	mu    sync.Mutex
	sums  map[admitted]int64
	total int64

	across bool // sum windows over all epochs: the clock is never set
}

type process struct {
	cmd  *exec.Cmd
	stop io.Closer
}

func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

func (p *process) end() { _ = p.stop.Close() }

// process starts another process.
func (x *exactStage) process() *process {
	job, err := json.Marshal(exactJob{Store: x.ways[x.r.IntN(len(x.ways))], Look: x.server.Addr, Rules: x.rules, Seed: x.r.Uint64()})
	require.NoError(x, err)
	cmd := exec.Command(os.Args[0], "-test.run=^TestExactChild$", "-test.v=false")
	cmd.Env = append(os.Environ(), exactChild+"="+string(job), "GOMAXPROCS=1")
	in, err := cmd.StdinPipe()
	require.NoError(x, err)
	out, err := cmd.StdoutPipe()
	require.NoError(x, err)
	require.NoError(x, cmd.Start())
	x.all.Go(func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			var a admitted
			if json.Unmarshal(lines.Bytes(), &a) == nil && a.Units > 0 { // the last line of a killed process is incomplete
				units := a.Units
				a.Units = 0
				x.mu.Lock()
				x.sums[a] += units
				x.total += units
				x.mu.Unlock()
			}
		}
		_ = cmd.Wait()
	})
	return &process{cmd: cmd, stop: in}
}

func (x *exactStage) units() int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.total
}

// most returns, for each limit, the most units that lie wholly inside one of its windows.
func (x *exactStage) most() []int64 {
	most := make([]int64, len(x.rules))
	used := make([]int64, len(x.rules))
	for a, units := range x.sums {
		used[a.Rule] += units
		span := store.Ring{Shape: x.rules[a.Rule].Shape}.Span()
		sum, parts := int64(0), map[admitted]int64{}
		for b, n := range x.sums {
			if b.Rule == a.Rule && (x.across || b.Epoch == a.Epoch) && b.From >= a.From && b.To < a.From+span {
				sum += n
				parts[b] = n
			}
		}
		if sum > most[a.Rule] && sum > 2*int64(x.rules[a.Rule].Limit) {
			x.Logf("%s: %d in a window: %v", x.rules[a.Rule].Name, sum, parts)
		}
		most[a.Rule] = max(most[a.Rule], sum)
	}
	for i, rule := range x.rules {
		x.Logf("%-45s at most %6d in a window, %8d in all", rule.Name, most[i], used[i])
	}
	return most
}

// clock moves the server's clock, as the scripts see it, forward or back.
func (x *exactStage) clock(by time.Duration) {
	require.NoError(x, x.client.IncrBy(x.Context(), penstockredis.ClockKey, by.Microseconds()).Err())
}

// No window exceeds its limit when processes die, sleep, lose replies or repeat commands, even if
// the store stops or its clock is set back by more than the window.
func TestExact(t *testing.T) {
	var rules []exactRule
	most := exactly(t, 25, func(x *exactStage) {
		rules = x.rules
		i := x.r.IntN(len(x.processes))
		p := x.processes[i]
		switch x.r.IntN(12) {
		case 0:
			p.signal(syscall.SIGKILL)
			x.processes[i] = x.process()
		case 1:
			p.end() // it returns its units, and leaves
			x.processes[i] = x.process()
		case 2, 3:
			p.signal(syscall.SIGSTOP)
			time.Sleep(time.Duration(x.r.Int64N(int64(300 * time.Millisecond))))
			p.signal(syscall.SIGCONT)
		case 4:
			require.NoError(x, x.server.Stop())
			time.Sleep(time.Duration(x.r.Int64N(int64(150 * time.Millisecond))))
			require.NoError(x, x.server.Continue())
		case 5:
			x.clock(-time.Hour)
		case 6:
			require.NoError(x, x.client.ScriptFlush(x.Context()).Err())
		}
	})
	for i, rule := range rules {
		require.LessOrEqual(t, most[i], int64(rule.Limit), rule.Name)
		if *exactFor >= 30*time.Second { // long enough for reads close to each other
			require.Greater(t, most[i], int64(rule.Limit)/3, "%s: the check sees too little to convict", rule.Name)
		}
	}
}

// If the store forgets, the units admitted before and after together stay within twice the limit.
//
// The store forgets at most once while earlier grants may still be spent and share a window with
// the loss, which is three intervals: a member that needs nothing doesn't notice, and may spend
// units borrowed from a bucket that begins an interval later, lasts another, and shares a window
// with the next.
func TestForgotten(t *testing.T) {
	var rules []exactRule
	most := exactly(t, 1, func(x *exactStage) {
		rules, x.across = x.rules, true
		time.Sleep(3 * time.Second) // the bound holds for one loss in three intervals; fewer losses do no harm
		switch x.r.IntN(3) {
		case 0:
			require.NoError(x, x.client.FlushAll(x.Context()).Err())
		case 1:
			keys, err := x.client.Keys(x.Context(), "{penstock:exact:*").Result()
			require.NoError(x, err)
			if len(keys) > 0 {
				require.NoError(x, x.client.Del(x.Context(), keys...).Err())
			}
		case 2:
			x.server.Kill()
			require.NoError(x, x.server.Revive())
		}
	})
	for i, rule := range rules {
		require.LessOrEqual(t, most[i], 2*int64(rule.Limit), rule.Name)
	}
}

// If the store forgets or its clock jumps, the bound is one limit more. When a clock is set back by
// less than the window, units leased from the next bucket are spent before that starts again.
func TestExactButForOneLimit(t *testing.T) {
	var rules []exactRule
	most := exactly(t, 25, func(x *exactStage) {
		rules = x.rules
		switch x.r.IntN(8) {
		case 0:
			x.clock([]time.Duration{50 * time.Millisecond, -50 * time.Millisecond, time.Second, -time.Second, time.Hour}[x.r.IntN(5)])
		case 1:
			keys, err := x.client.Keys(x.Context(), "{penstock:exact:*").Result()
			require.NoError(x, err)
			if len(keys) > 0 {
				require.NoError(x, x.client.Del(x.Context(), keys[x.r.IntN(len(keys))]).Err())
			}
		case 2:
			x.server.Kill()
			require.NoError(x, x.server.Revive())
		default:
			time.Sleep(200 * time.Millisecond)
		}
	})
	for i, rule := range rules {
		require.LessOrEqual(t, most[i], 2*int64(rule.Limit), rule.Name)
	}
}
