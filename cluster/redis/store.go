package penstockredis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/cluster/store"
)

// Store is a [store.Store] in Redis or Valkey. It is safe for concurrent use. Close a store that
// [Open] returned.
//
// It sends no command twice, unless the server has certainly not executed it because it doesn't
// know the script or is moving the key. If a command was certainly not executed, for these or other
// reasons, its error wraps [store.ErrNotExecuted].
type Store struct {
	client  redis.UniversalClient
	owned   bool // by the store: Close closes it
	timeout time.Duration
	scripts *scripts
	slots   *slots // nil without a Redis Cluster
}

var (
	_ store.Store  = (*Store)(nil)
	_ store.Prober = (*Store)(nil)
)

// New returns a store that uses the caller's client, which the caller closes afterwards. It makes
// no network requests. The client must not retry by itself: MaxRetries and MaxRedirects must be -1,
// ContextTimeoutEnabled must be set, and ReadTimeout and WriteTimeout, the maximum duration of a
// command, must be at most a second.
func New(client redis.UniversalClient) (*Store, error) {
	s := &Store{client: client, scripts: makeScripts(clock)}
	var problems []error
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	check := func(retries int, contexts bool, timeouts ...time.Duration) {
		if retries > 0 {
			wrong("MaxRetries must be -1: a retried command can hand units back twice")
		}
		if !contexts {
			wrong("ContextTimeoutEnabled must be set: otherwise calls wait for a slow server")
		}
		for _, timeout := range timeouts {
			if timeout <= 0 || timeout > time.Second {
				wrong("ReadTimeout and WriteTimeout must be from 1 ns to 1 s, not %v", timeout)
			}
			s.timeout = max(s.timeout, timeout)
		}
	}
	switch client := client.(type) {
	case *redis.Client:
		o := client.Options()
		check(o.MaxRetries, o.ContextTimeoutEnabled, o.ReadTimeout, o.WriteTimeout)
	case *redis.ClusterClient:
		o := client.Options()
		check(o.MaxRetries, o.ContextTimeoutEnabled, o.ReadTimeout, o.WriteTimeout)
		if o.MaxRedirects > 0 {
			wrong("MaxRedirects must be -1: go-redis would retry redirected commands")
		}
		if o.ReadOnly {
			wrong("ReadOnly, RouteByLatency and RouteRandomly must not be set: limits are kept by masters")
		}
		s.slots = newSlots(client)
	default:
		wrong("a %T is not supported: use a *redis.Client or a *redis.ClusterClient", client)
	}
	if problems != nil {
		return nil, fmt.Errorf("penstockredis: %w", errors.Join(problems...))
	}
	return s, nil
}

// Close closes the client if the store owns it.
func (s *Store) Close() error {
	var err error
	if s.slots != nil {
		s.slots.end()
		defer s.slots.group.Wait() // reads in flight end once the client is closed
	}
	if s.owned {
		err = s.client.Close()
	}
	return err
}

// Shard returns the number of the cluster's server that has the key. It is the same for all keys if
// there is one server, or until the store has read the slot table. It makes no network requests.
func (s *Store) Shard(key string) int {
	if s.slots == nil {
		return 0
	}
	return s.slots.shard(key)
}

// Do executes the commands: see [store.Store]. It returns when ctx ends, or after the timeout if
// ctx has no deadline.
func (s *Store) Do(ctx context.Context, batch []store.Command) {
	if _, patient := ctx.Deadline(); !patient {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.timeout)
		defer cancel()
	}
	var calls []*pending
	for _, c := range batch {
		call, err := s.scripts.encode(c)
		if err != nil {
			c.Result().Err = err
			continue
		}
		calls = append(calls, &pending{call: call, outcome: c.Result()})
	}
	if s.slots != nil {
		s.slots.learn()
	}
	send(ctx, s.client, calls, false)
	stale := false // the slot table may be outdated
	var unknown []*pending
	asked := map[string][]*pending{}
	for _, p := range calls {
		switch wordOf(p.err) {
		case "NOSCRIPT":
			p.args = p.withText()
			unknown = append(unknown, p)
		case "ASK":
			if server, ok := redis.IsAskError(p.err); ok && s.slots != nil {
				p.args = p.withText()
				asked[server] = append(asked[server], p)
			}
		case "MOVED", "CLUSTERDOWN":
			stale = true
		case "":
			stale = stale || p.err != nil // the server may have been replaced
		}
	}
	send(ctx, s.client, unknown, false)
	for server, calls := range asked {
		if client := s.slots.client(ctx, server); client != nil {
			send(ctx, client, calls, true)
		}
	}
	if stale && s.slots != nil { // otherwise the URL is of a single server
		s.slots.read() // also makes go-redis read its own
	}
	for _, p := range calls {
		p.outcome.Err = p.err
		if p.err != nil {
			p.outcome.Err = explained(p.err)
		}
	}
}

// pending is a call in flight.
type pending struct {
	call
	outcome *store.Outcome
	err     error
}

// send executes the calls in one pipeline, and fills in their replies or errors. A server that keys
// are being moved to accepts only calls with asking set.
func send(ctx context.Context, client redis.Cmdable, calls []*pending, asking bool) {
	if len(calls) == 0 {
		return
	}
	pipe := client.Pipeline()
	answers := make([]*redis.Cmd, len(calls))
	for i, p := range calls {
		if asking {
			pipe.Do(ctx, "asking")
		}
		answers[i] = pipe.Do(ctx, p.args...)
	}
	_, failed := pipe.Exec(ctx)
	for i, p := range calls {
		answer, err := answers[i].Result() // errors are per command, unless the server refused the connection
		switch {
		case err != nil:
		case answer == nil && failed != nil:
			err = refused{failed}
		default:
			err = p.decode(answer)
		}
		p.err = err
	}
}

// slots is the slot table of a Redis Cluster.
type slots struct {
	cluster *redis.ClusterClient
	ctx     context.Context // of all reads, until end is called
	end     func()
	timeout time.Duration // of one read
	table   atomic.Pointer[[slotCount]uint16]

	mu      sync.Mutex // guards the fields below it
	asking  bool
	again   bool // a key was elsewhere since the latest read began
	asked   time.Time
	numbers map[string]uint16 // of servers, by address
	group   sync.WaitGroup
}

const (
	slotCount = 16384
	// The minimum time between two reads of the slot table.
	slotsEvery   = time.Second
	slotsTimeout = time.Second
	// The number of attempts without a reply, and the delay between them.
	slotsTries = 8
	slotsAgain = 25 * time.Millisecond
)

func newSlots(client *redis.ClusterClient) *slots {
	s := &slots{cluster: client, timeout: slotsTimeout, numbers: map[string]uint16{}}
	s.ctx, s.end = context.WithCancel(context.Background())
	return s
}

// shard returns the number of the server with the key's slot, or slotCount while that is unknown.
func (s *slots) shard(key string) int {
	slot := slotOf(key)
	if table := s.table.Load(); table != nil {
		return int(table[slot])
	}
	return slotCount
}

// learn reads the table in the background if there is none yet or it is outdated.
func (s *slots) learn() {
	s.mu.Lock()
	due := s.table.Load() == nil || s.again
	s.mu.Unlock()
	if due {
		s.read()
	}
}

// read reads the table in the background; if it was read just now, at the next command.
func (s *slots) read() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asking || time.Since(s.asked) < slotsEvery {
		s.again = true
		return
	}
	s.again = false
	s.asking, s.asked = true, time.Now()
	s.group.Go(s.readNow)
}

func (s *slots) readNow() {
	ranges := s.ask()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asking = false
	if len(ranges) == 0 {
		return
	}
	table := new([slotCount]uint16)
	for slot := range table {
		table[slot] = slotCount // no server has it
	}
	for _, r := range ranges {
		if len(r.Nodes) == 0 {
			continue
		}
		number, ok := s.numbers[r.Nodes[0].Addr]
		if !ok {
			number = uint16(len(s.numbers))
			s.numbers[r.Nodes[0].Addr] = number
		}
		for slot := max(0, r.Start); slot <= min(r.End, slotCount-1); slot++ {
			table[slot] = number
		}
	}
	s.table.Store(table)
}

// ask returns the servers and their slots, or nil if no server replies. Before go-redis knows the
// masters, it asks one server after the other in random order, and the first may be down. So ask
// soon repeats the request, while replies to earlier requests may still arrive, and uses the first
// reply.
func (s *slots) ask() []redis.ClusterSlot {
	ctx, cancel := context.WithTimeout(s.ctx, s.timeout)
	defer cancel()
	answers := make(chan []redis.ClusterSlot, slotsTries) // buffered: late replies need no receiver
	again := time.NewTicker(slotsAgain)
	defer again.Stop()
	tries, failed := 0, 0
	try := func() {
		if tries < slotsTries {
			tries++
			s.group.Go(func() { s.askAll(ctx, answers) })
		}
	}
	for try(); failed < slotsTries; {
		select {
		case answer := <-answers:
			if answer != nil {
				return answer
			}
			failed++
		case <-ctx.Done():
			return nil
		case <-again.C:
			try()
		}
	}
	return nil
}

// askAll asks all masters, and passes on the first reply, or nil. It ends when all have replied, or
// at ctx's deadline: go-redis reads until then, even if ctx is canceled. A panic in a hook of the
// client counts as no reply.
func (s *slots) askAll(ctx context.Context, answers chan<- []redis.ClusterSlot) {
	var first sync.Once
	defer func() {
		_ = recover()
		first.Do(func() { answers <- nil })
	}()
	_ = s.cluster.ForEachMaster(ctx, func(ctx context.Context, client *redis.Client) error {
		defer func() { _ = recover() }()
		//lint:ignore SA1019 servers before 7.0 don't know the command that replaces it
		answer, err := client.ClusterSlots(ctx).Result()
		if err == nil && len(answer) > 0 {
			first.Do(func() { answers <- answer })
		}
		return nil
	})
}

// client returns the client of a master by its address, or nil if there is none.
func (s *slots) client(ctx context.Context, server string) (found *redis.Client) {
	var mu sync.Mutex
	_ = s.cluster.ForEachMaster(ctx, func(_ context.Context, client *redis.Client) error {
		if client.Options().Addr == server {
			mu.Lock()
			defer mu.Unlock()
			found = client
		}
		return nil
	})
	return found
}

// slotOf returns the slot of a key in a Redis Cluster: CRC16 (XMODEM) of its hash tag.
func slotOf(key string) uint16 {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			key = tag
		}
	}
	var crc uint16
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc % slotCount
}
