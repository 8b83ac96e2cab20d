package clustersim

import (
	"context"
	"time"

	"github.com/penstock-go/penstock/cluster"
)

// Node is one member.
type Node struct {
	Clock  *Clock
	Link   *Link
	Member *cluster.Member
	Window *cluster.Window

	Admitted, Refused, Asked, Waited int64 // units, but Waited: calls
	Calls                            int64
	Longest                          time.Duration // that a call has waited
	timeout                          time.Duration
	book                             *Book
}

// NewNode joins one. Its seed is drawn.
func (s *Server) NewNode(c *Clock, link *Link, members int) *Node {
	m, err := cluster.Join(cluster.Config{Store: link, Clock: c, Namespace: "sim", Members: members, Seed: 1 + s.world.Random.Uint64()>>1})
	if err != nil {
		panic(err)
	}
	return &Node{Clock: c, Link: link, Member: m}
}

// Share has the node share a window, whose admissions go to a book.
func (n *Node) Share(name string, cfg cluster.WindowConfig, book *Book) {
	w, err := n.Member.Window(n.Member.Key(name), cfg)
	if err != nil {
		panic(err)
	}
	n.Window, n.book, n.timeout = w, book, w.Timeout()
}

// Take is a call of so many units, as the engine makes it: ask, fetch what lacks, take. It may
// borrow if borrow isn't 0.
func (n *Node) Take(units int64, borrow time.Duration) {
	n.Calls++
	n.Asked += units
	now := n.Clock.Now()
	switch n.Window.Ask(now, units) {
	case cluster.Fits:
		if _, ok := n.Window.TryAdd(now, units); ok {
			n.admit(units)
			return
		}
	case cluster.Refuses:
		if borrow == 0 {
			n.Refused += units
			return
		}
	}
	n.Clock.Call(func() {
		need := []cluster.Need{{Limit: n.Window, Units: units, MaxWait: borrow}}
		if err := n.Member.Fetch(context.Background(), n.timeout, need); err != nil {
			panic(err)
		}
		if waited := time.Duration(n.Clock.Now() - now); waited > 0 {
			n.Waited++
			n.Longest = max(n.Longest, waited)
		}
		switch {
		case !need[0].Got:
			n.Refused += units
		case need[0].Wait > 0:
			_ = n.Clock.Sleep(context.Background(), need[0].Wait)
			if n.Window.Holds(n.Clock.Now(), need[0].Token) {
				n.admit(units)
			} else {
				n.Window.Cancel(need[0].Token, units)
			}
		default:
			n.admit(units)
		}
	})
}

func (n *Node) admit(units int64) {
	n.Admitted += units
	n.book.admit(units)
}

// Book is what all members together have admitted of one window, in the store's time.
type Book struct {
	server *Server
	limit  int64
	key    string
	units  map[int64]int64
	Most   int64 // in a window
	log    []admission
}

// NewBook is for the only window of a server.
func (s *Server) NewBook(limit int64) *Book {
	s.book = &Book{server: s, limit: limit, units: map[int64]int64{}}
	return s.book
}

// fold follows the store where its clock was set back by far: what counted counts on, in the bucket that is
// current.
func (b *Book) fold(ring cluster.Ring, from, to int64) {
	all := int64(0)
	for x := from - ring.Span() + 1; x <= from; x++ {
		all += b.units[x]
	}
	b.units = map[int64]int64{to: all}
}

// admit counts units at the store's time, which is never before its newest bucket.
func (b *Book) admit(units int64) {
	if b.key == "" {
		for key := range b.server.rings {
			b.key = key
		}
		if b.key == "" {
			return // nothing came from the store yet: it was away
		}
	}
	ring := b.server.rings[b.key]
	bucket := max(ring.Bucket(b.server.Clock.Now()), b.server.heads[b.key])
	b.units[bucket] += units
	b.log = append(b.log, admission{b.server.world.now, units})
	sum := int64(0)
	for x := bucket - ring.Span() + 1; x <= bucket; x++ {
		sum += b.units[x]
	}
	b.Most = max(b.Most, sum)
}

// admission is units at a true time.
type admission struct{ at, units int64 }

// MostIn is the most that was admitted in any true interval of a length, its end excluded.
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

// Over is by how many units the limit was exceeded at most.
func (b *Book) Over() int64 { return max(0, b.Most-b.limit) }
