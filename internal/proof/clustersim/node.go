package clustersim

import (
	"context"
	"fmt"
	"time"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/cluster/store"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/stat"
)

// Node is one member.
type Node struct {
	Clock  *Clock
	Link   *Link
	Member *sharing.Member
}

// NewNode adds a member with a drawn seed.
func (s *Server) NewNode(c *Clock, link *Link, members int) *Node {
	m, err := sharing.Join(cluster.Config{Store: link, Clock: c, Namespace: "sim", Members: members, Seed: 1 + s.world.Random.Uint64()>>1})
	if err != nil {
		panic(err)
	}
	return &Node{Clock: c, Link: link, Member: m}
}

// Caller makes the calls of a node under one window.
type Caller struct {
	Window *sharing.Window

	Calls, Waited     int64
	Admitted, Refused int64         // units
	Longest           time.Duration // wait of a call for the store, or for a lease to begin
	Patience          time.Duration // Long counts calls that have waited longer
	Long              int64
	// Then is called with each admitted call's token, unless nil: the call may settle later.
	Then func(token, units int64)
	node *Node
	book *Book
}

// Share lets the node share the window of a book.
func (n *Node) Share(book *Book) *Caller {
	w, err := n.Member.Window(n.Member.Key(book.name), book.config)
	if err != nil {
		panic(err)
	}
	shape := book.config.Shape
	book.key = n.Member.Key("window", n.Member.Key(book.name), fmt.Sprintf("%d/%d/%t", shape.Interval, shape.Buckets, shape.Strict))
	book.server.books[book.key] = book
	return &Caller{Window: w, node: n, book: book}
}

// Take makes a call of that many units, as the engine does: ask, fetch the missing units, take. It
// may borrow if borrow isn't 0.
func (c *Caller) Take(units int64, borrow time.Duration) {
	defer c.node.Clock.wake() // calls that this one has woken
	c.Calls++
	now := c.node.Clock.Now()
	switch c.Window.Ask(now, units) {
	case sharing.Fits:
		if token, ok := c.Window.TryAdd(0, now, units); ok {
			c.admit(token, units)
			return
		}
	case sharing.Refuses:
		if borrow == 0 {
			c.Refused += units
			return
		}
	}
	c.node.Clock.Call(func() { c.fetch(now, units, borrow) })
}

func (c *Caller) fetch(now, units int64, borrow time.Duration) {
	clock := c.node.Clock
	need := []sharing.Need{{Limit: c.Window, Units: units, MaxWait: borrow}}
	if err := c.node.Member.Fetch(context.Background(), c.Window.Timeout(), need); err != nil {
		panic(err)
	}
	if waited := time.Duration(clock.Now() - now); waited > 0 {
		c.Waited++
		c.Longest = max(c.Longest, waited)
		if waited > c.Patience {
			c.Long++
		}
	}
	switch {
	case !need[0].Got:
		c.Refused += units
	case need[0].Wait == 0:
		c.admit(need[0].Token, units)
	default:
		_ = clock.Sleep(context.Background(), need[0].Wait)
		if c.Window.Holds(clock.Now(), need[0].Token) {
			c.admit(need[0].Token, units)
		} else {
			c.Window.Cancel(need[0].Token, units)
		}
	}
}

func (c *Caller) admit(token, units int64) {
	c.Admitted += units
	c.book.admit(units)
	if c.Then != nil {
		c.Then(token, units)
	}
}

// Book records the units that all members together have admitted of one window, in the store's
// time.
type Book struct {
	Most int64 // in a window
	// Keeps must be set for MostIn.
	Keeps bool

	server *Server
	name   string
	key    string
	config sharing.WindowConfig
	limit  int64
	units  map[int64]int64
	sum    int64
	newest int64
	log    []admission
}

// admission is a number of units at a true time.
type admission struct{ at, units int64 }

// NewBook returns a Book for a window that nodes will share.
func (s *Server) NewBook(name string, cfg sharing.WindowConfig) *Book {
	return &Book{server: s, name: name, config: cfg, limit: int64(cfg.Threshold), units: map[int64]int64{}}
}

// fold follows the store after its clock was set far back: counted units stay counted, in the
// current bucket.
func (b *Book) fold(ring store.Ring, from, to int64) {
	all := int64(0)
	for x := from - ring.Span() + 1; x <= from; x++ {
		all += b.units[x]
	}
	b.units = map[int64]int64{to: all}
	b.newest = 0
}

// admit counts units at the store's time, which is never before its newest bucket.
func (b *Book) admit(units int64) {
	if b.Keeps {
		b.log = append(b.log, admission{b.server.world.now, units})
	}
	ring, ok := b.server.rings[b.key]
	if !ok {
		return // the store has been unreachable since the start
	}
	bucket := max(ring.Bucket(b.server.Clock.Now()), b.server.heads[b.key])
	b.units[bucket] += units
	if bucket == b.newest {
		b.sum += units
	} else {
		b.newest, b.sum = bucket, 0
		for x := bucket - ring.Span() + 1; x <= bucket; x++ {
			b.sum += b.units[x]
		}
		delete(b.units, bucket-2*ring.Span())
	}
	b.Most = max(b.Most, b.sum)
}

// Over returns the largest excess over the limit, in units.
func (b *Book) Over() int64 { return max(0, b.Most-b.limit) }

// MostIn returns the most units admitted in any real interval of a length, its end excluded.
func (b *Book) MostIn(d time.Duration) (most int64) {
	sum, first := int64(0), 0
	for i, a := range b.log {
		for first < i && b.log[first].at <= a.at-int64(d) {
			sum -= b.log[first].units
			first++
		}
		sum += a.units
		most = max(most, sum)
	}
	return most
}

// Local is a window in this process with the same traffic: the most that could be admitted.
func (b *Book) Local() *stat.Window {
	w, err := stat.NewWindow(b.config.Shape)
	if err != nil {
		panic(err)
	}
	return w
}
