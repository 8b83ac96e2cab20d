package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/inspect"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/rules"
)

// stallers has readers ask while a page is being made, which is made for as long as it is
// told, and stall as they read. Those that come meanwhile must share what they get, and get
// nothing older than their question; what they share must stay what it is until the last has
// read it; what all hold must be bounded; and nobody may keep the handler waiting forever.
func stallers(r *round) error {
	s := &stallRound{round: r, making: make(chan struct{}), goOn: make(chan struct{})}
	s.guard, _ = r.bareGuard(api.Config{Caps: node.Caps{Resources: 2000, Calls: 2000}})
	s.handler = inspect.Handler(s.guard.Engine(), s.set)
	for _, part := range []func() error{s.crowd, s.sharers, s.hoarders} {
		err := part()
		for _, page := range s.pages {
			switch {
			case page.panicked != nil:
				return fmt.Errorf("%s: a panic: %v", page.path, page.panicked)
			case page.endless:
				return fmt.Errorf("%s goes to a reader who may take it as slowly as they like", page.path)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

type stallRound struct {
	*round
	guard   *api.Guard
	handler http.Handler
	all     sync.WaitGroup
	pages   []*stalledPage

	version atomic.Int64 // of the rules that are shown
	made    atomic.Int64 // pages of rules
	long    bool         // the rules are
	held    atomic.Bool  // the next page of rules is made for as long as it is told
	making  chan struct{}
	goOn    chan struct{}
}

// set is what /rules shows.
func (s *stallRound) set() rules.Set {
	s.made.Add(1)
	name := fmt.Sprint("version ", s.version.Load())
	if s.long {
		name += strings.Repeat(" long", heldByOne/5)
	}
	if s.held.CompareAndSwap(true, false) {
		s.making <- struct{}{}
		<-s.goOn
	}
	return rules.Set{Flow: []flow.Rule{{Resource: name}}}
}

// ask sends a reader, who takes nothing before it is let to.
func (s *stallRound) ask(path string, stalls bool) *stalledPage {
	p := &stalledPage{path: path, header: make(http.Header), came: make(chan struct{}), writes: make(chan struct{}), over: make(chan struct{}), read: make(chan struct{})}
	if !stalls {
		close(p.read)
	}
	s.pages = append(s.pages, p)
	s.offered.Add(1)
	s.all.Go(func() {
		defer close(p.over)
		defer func() { p.panicked = recover() }()
		req, _ := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://localhost"+path, nil)
		s.handler.ServeHTTP(p, req)
	})
	<-p.came
	return p
}

// crowd sends many while a page is being made.
func (s *stallRound) crowd() error {
	s.held.Store(true)
	first := s.ask("/rules", false)
	<-s.making
	now := s.version.Add(1)
	before, n := s.made.Load(), 20+s.IntN(80)
	var crowd []*stalledPage
	for range n {
		crowd = append(crowd, s.ask("/rules", false))
	}
	time.Sleep(2 * ms) // they have come, and most of them have asked; who hasn't will soon
	s.goOn <- struct{}{}
	s.all.Wait()
	s.checked.Add(int64(n) + 2)
	if first.code() != http.StatusOK {
		return fmt.Errorf("alone, a reader gets %d", first.code())
	}
	for _, p := range crowd {
		if want := fmt.Sprint("version ", now); p.code() != http.StatusOK || !strings.Contains(p.body.String(), want) {
			return fmt.Errorf("%d readers at once; one who came when %q was in force gets %d %q", n, want, p.code(), p.body.String())
		}
	}
	if made := int(s.made.Load() - before); made > 2+n/2 {
		return fmt.Errorf("%d readers came while a page was made, and %d were made for them", n, made)
	}
	return nil
}

// sharers are two who come while something else is made, and so share a tree: one reads it
// at once, the other when the next tree has been made.
func (s *stallRound) sharers() error {
	for i := range 800 {
		e, err := s.guard.Entry(s.ctx, fmt.Sprint("GET /resources/", i, "/of/a/name/that/is/not/short/and/has/no/end"))
		if err != nil {
			return err
		}
		e.Exit()
	}
	path := pick(s.round, "/tree", "/tree?format=json", "/tree?format=sentinel")
	s.held.Store(true)
	s.ask("/rules", false)
	<-s.making
	quick, slow := s.ask(path, false), s.ask(path, true)
	time.Sleep(ms) // they have come, and nearly always asked: if not, they share nothing
	s.goOn <- struct{}{}
	<-quick.over
	slow.begins()
	for i := range 800 {
		e, err := s.guard.Entry(s.ctx, fmt.Sprint("POST /others/", i, "/which/have/other/names/of/the/very/same/length.."))
		if err != nil {
			return err
		}
		e.Exit()
	}
	<-s.ask(path, false).over
	close(slow.read)
	s.all.Wait()
	s.checked.Add(1)
	if got := slow.body.String(); strings.Contains(got, "/others/") || quick.body.Len() < 800*40 || len(got) < 800*40 {
		return fmt.Errorf("of two who ask for %s at once, one reads when the next tree is made, and finds %d bytes, some of them of that; the other found %d",
			path, len(got), quick.body.Len())
	}
	return nil
}

// heldByOne is what a page of hoarders has.
const heldByOne = 4 << 20

// hoarders ask one after the other, each for a page of their own, and take nothing of it.
func (s *stallRound) hoarders() error {
	s.long = true
	const n = 24
	var pages []*stalledPage
	for range n {
		s.version.Add(1)
		p := s.ask("/rules?format=json", true)
		p.begins()
		pages = append(pages, p)
	}
	holding := 0
	for _, p := range pages {
		if p.code() == http.StatusOK {
			holding++
		}
		close(p.read)
	}
	s.all.Wait()
	s.checked.Add(n)
	if held := holding * heldByOne; held > mostForReaders {
		return fmt.Errorf("%d readers take nothing, and hold a page of %d MiB each", holding, heldByOne>>20)
	}
	return nil
}

// stalledPage is an answer whose reader takes nothing for a while.
type stalledPage struct {
	path               string
	header             http.Header
	asked, begun       sync.Once
	came, writes, over chan struct{} // closed: when the handler has begun, writes, has ended
	read               chan struct{} // closed when the reader takes what there is
	panicked           any           // with which the handler ended

	mu       sync.Mutex
	status   int
	body     bytes.Buffer
	deadline time.Time
	endless  bool // somebody wrote, and would wait for as long as the reader likes
}

func (p *stalledPage) Header() http.Header {
	p.asked.Do(func() { close(p.came) })
	return p.header
}

func (p *stalledPage) WriteHeader(status int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status = status
}

// SetWriteDeadline is for [http.ResponseController].
func (p *stalledPage) SetWriteDeadline(t time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deadline = t
	return nil
}

func (p *stalledPage) Write(data []byte) (int, error) {
	p.mu.Lock()
	if p.status == 0 {
		p.status = http.StatusOK
	}
	p.endless = p.endless || p.status == http.StatusOK && p.deadline.IsZero()
	refused := p.status != http.StatusOK
	p.mu.Unlock()
	p.begun.Do(func() { close(p.writes) })
	if !refused {
		<-p.read
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.body.Write(data)
}

// begins waits until something of the page is written, or there is nothing to write.
func (p *stalledPage) begins() {
	select {
	case <-p.writes:
	case <-p.over:
	}
}

func (p *stalledPage) code() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.status
}
