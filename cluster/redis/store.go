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

// Store is a [store.Store] in a Redis or a Valkey. It is safe for concurrent use. A store that
// [Open] returned has to be closed.
//
// It sends no command twice, except one that the server has certainly not executed because it
// doesn't know the script, or is moving the key elsewhere. The error of a command that was
// certainly not executed, for these reasons or others, wraps [store.ErrNotExecuted].
type Store struct {
	client  redis.UniversalClient
	owned   bool // by the store: Close closes it
	timeout time.Duration
	scripts *scripts
	slots   *slots // nil unless it is a Redis Cluster
}

var (
	_ store.Store  = (*Store)(nil)
	_ store.Prober = (*Store)(nil)
)

// New returns a store that uses a client of the caller's, who closes it afterwards. The client is
// refused unless it leaves it to others to try again: MaxRetries and MaxRedirects -1,
// ContextTimeoutEnabled, and a ReadTimeout and WriteTimeout of at most a second, which is the
// longest that a command then takes. It asks the network nothing.
func New(client redis.UniversalClient) (*Store, error) {
	s := &Store{client: client, scripts: makeScripts(clock)}
	var problems []error
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	check := func(retries int, contexts bool, timeouts ...time.Duration) {
		if retries > 0 {
			wrong("MaxRetries must be -1: a command that is sent again can hand units back twice")
		}
		if !contexts {
			wrong("ContextTimeoutEnabled must be set: calls would wait for a server that is slow")
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
			wrong("MaxRedirects must be -1: go-redis also sends commands again that way")
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

// Close closes the client, if it is the store's own.
func (s *Store) Close() error {
	var err error
	if s.slots != nil {
		s.slots.end()
		defer s.slots.group.Wait() // with the client closed, what is on its way ends
	}
	if s.owned {
		err = s.client.Close()
	}
	return err
}

// Shard returns the number of the cluster's server that has the key; of all keys the same one if there is one
// server, or until the store has heard which has what. It asks the network nothing.
func (s *Store) Shard(key string) int {
	if s.slots == nil {
		return 0
	}
	return s.slots.shard(key)
}

// Do executes the commands: see [store.Store]. It returns when ctx ends; where ctx has no deadline,
// also when the timeout is over.
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
	stale := false // what is known of who has which slots
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
	if stale && s.slots != nil { // else the URL is that of one server
		s.slots.read() // which has go-redis read its own too
	}
	for _, p := range calls {
		p.outcome.Err = p.err
		if p.err != nil {
			p.outcome.Err = explained(p.err)
		}
	}
}

// pending is a call on its way.
type pending struct {
	call
	outcome *store.Outcome
	err     error
}

// send executes the calls in one pipeline, and fills in their replies or errors. A server that keys
// are being moved to answers only those that are asking.
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
		answer, err := answers[i].Result() // each command has its own error, unless the server refused the connection
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

// slots says which server has which slot of a Redis Cluster.
type slots struct {
	cluster *redis.ClusterClient
	ctx     context.Context // of all reads, until end is called
	end     func()
	timeout time.Duration // of a read
	table   atomic.Pointer[[slotCount]uint16]

	mu      sync.Mutex
	asking  bool
	again   bool // a key was elsewhere since the latest read began
	asked   time.Time
	numbers map[string]uint16 // of servers, by their address
	group   sync.WaitGroup
}

const (
	slotCount = 16384
	// A table of slots is read again at most this often.
	slotsEvery   = time.Second
	slotsTimeout = time.Second
	// While it isn't answered, so many tries are made, each so long after the one before.
	slotsTries = 8
	slotsAgain = 25 * time.Millisecond
)

func newSlots(client *redis.ClusterClient) *slots {
	s := &slots{cluster: client, timeout: slotsTimeout, numbers: map[string]uint16{}}
	s.ctx, s.end = context.WithCancel(context.Background())
	return s
}

// shard is the number of the server that has the key's slot, or one that no server has, as long as that is unknown.
func (s *slots) shard(key string) int {
	slot := slotOf(key)
	if table := s.table.Load(); table != nil {
		return int(table[slot])
	}
	return slotCount
}

// learn reads the table in the background, if there is none yet or it is to be read again.
func (s *slots) learn() {
	s.mu.Lock()
	due := s.table.Load() == nil || s.again
	s.mu.Unlock()
	if due {
		s.read()
	}
}

// read reads the table in the background: at the next command after it was read just now.
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
		table[slot] = slotCount // no server's
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

// ask returns which server has which slots, nil if none says so. Before go-redis knows the masters it asks one
// server after the other, in an order that it draws, and the first may be one that doesn't answer. So it is asked again
// soon, while it may still answer, and the first answer counts.
func (s *slots) ask() []redis.ClusterSlot {
	ctx, cancel := context.WithTimeout(s.ctx, s.timeout)
	defer cancel()
	answers := make(chan []redis.ClusterSlot, slotsTries) // so that nobody need listen
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

// askAll asks all masters, and passes on the first answer, or nil if there is none. It ends when all have answered, or when
// ctx's time is over: go-redis reads until then, even if ctx is canceled. A hook of the client that panics is a server that
// doesn't answer.
func (s *slots) askAll(ctx context.Context, answers chan<- []redis.ClusterSlot) {
	var first sync.Once
	defer func() {
		_ = recover()
		first.Do(func() { answers <- nil })
	}()
	_ = s.cluster.ForEachMaster(ctx, func(ctx context.Context, client *redis.Client) error {
		defer func() { _ = recover() }()
		//lint:ignore SA1019 servers before 7.0 don't know the command that has taken its place
		answer, err := client.ClusterSlots(ctx).Result()
		if err == nil && len(answer) > 0 {
			first.Do(func() { answers <- answer })
		}
		return nil
	})
}

// client is the client of a master by its address, nil if there is none.
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

// slotOf is the slot of a key in a Redis Cluster: CRC16 (XMODEM) of its hash tag.
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
