package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/node"
)

// readers has many read a large tree over HTTP on loopback, of whom some never take what
// they asked for, some take it slowly, and some hang up. The memory that they cost is
// bounded, whoever reads gets all of it or is told to come again, and when they have gone
// nothing is left of them.
func readers(r *round) error {
	if r.one(2) {
		return stallers(r)
	}
	names := 2500 + r.IntN(1000)
	g, _ := r.bareGuard(api.Config{Caps: node.Caps{Resources: names, Calls: names}})
	for i := range names {
		e, err := g.Entry(r.ctx, fmt.Sprintf("GET /resources/%d/of/a/name/that/is/not/short", i))
		if err != nil {
			return err
		}
		e.Exit()
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: g.Handler(), ErrorLog: nil}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	rd := &readerRound{round: r, address: listener.Addr().String(), names: names}
	before, goroutines := heap(), runtime.NumGoroutine()
	err = rd.crowd()
	most := rd.most - before
	for _, c := range rd.open {
		_ = c.Close()
	}
	rd.all.Wait()
	_ = server.Close()
	if serving := <-served; !errors.Is(serving, http.ErrServerClosed) {
		return serving
	}
	switch {
	case err != nil:
		return err
	case most > mostForReaders:
		return fmt.Errorf("%d readers of a tree of %d resources, %d of whom take nothing, hold %d MiB", rd.count, names, len(rd.open), most>>20)
	}
	r.checked.Add(2)
	http.DefaultClient.CloseIdleConnections()
	if left := goroutinesBeyond(goroutines - 1); left > 0 { // without the server's own
		return fmt.Errorf("the readers have gone, and %d goroutines are left of them", left)
	}
	return nil
}

// mostForReaders is the memory that all readers together may cost.
const mostForReaders = 64 << 20

type readerRound struct {
	*round
	address string
	names   int
	count   int
	open    []net.Conn // of those who take nothing
	most    int64      // heap
	all     sync.WaitGroup

	mu     sync.Mutex
	broken error
}

// crowd sends them all, and weighs the heap while they are there.
func (rd *readerRound) crowd() error {
	for range 16 + rd.IntN(16) {
		path := pick(rd.round, "/tree?format=json", "/tree?format=json", "/tree", "/tree?format=sentinel", "/nodes", "/nodes?limit=1000", "/rules")
		rd.count++
		rd.offered.Add(1)
		switch rd.IntN(14) {
		case 0:
			rd.all.Go(func() { rd.fail(rd.reads(path, 0)) })
		case 1:
			rd.all.Go(func() { rd.fail(rd.reads(path, ms)) })
		case 2:
			conn, err := rd.asks(path)
			if err != nil {
				return err
			}
			_ = conn.Close()
		default: // what is largest
			conn, err := rd.asks("/tree?format=json")
			if err != nil {
				return err
			}
			rd.open = append(rd.open, conn)
		}
		rd.weigh()
	}
	for range 30 {
		time.Sleep(10 * ms) // for the server to render what was asked for
		rd.weigh()
	}
	if err := rd.reads("/tree", 0); err != nil { // all the others are still there
		return err
	}
	rd.mu.Lock()
	defer rd.mu.Unlock()
	return rd.broken
}

func (rd *readerRound) weigh() {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if int64(m.HeapAlloc)-rd.most > 16<<20 || rd.most == 0 { // some of it may be garbage
		rd.most = max(rd.most, heap())
	}
}

func (rd *readerRound) fail(err error) {
	if err != nil {
		rd.mu.Lock()
		defer rd.mu.Unlock()
		rd.broken = err
	}
}

// asks sends a request, and takes nothing of the answer.
func (rd *readerRound) asks(path string) (net.Conn, error) {
	conn, err := net.Dial("tcp", rd.address)
	if err != nil {
		return nil, err
	}
	_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path)
	return conn, err
}

// reads gets a page, with a pause before each piece, and looks whether it is whole.
func (rd *readerRound) reads(path string, pause time.Duration) error {
	resp, err := http.Get("http://" + rd.address + path)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer func() { _ = resp.Body.Close() }()
	rd.checked.Add(1)
	if resp.StatusCode == http.StatusServiceUnavailable {
		if resp.Header.Get("Retry-After") == "" {
			return fmt.Errorf("%s: %s, and not when to come again", path, resp.Status)
		}
		return nil
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, resp.Status)
	}
	page := &page{from: resp.Body, pause: pause}
	if strings.Contains(resp.Header.Get("Content-Type"), "json") {
		for d := json.NewDecoder(page); err == nil; {
			_, err = d.Token()
		}
	} else {
		_, err = io.Copy(io.Discard, page)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s is not whole: after %d bytes %w", path, page.length, err)
	}
	if strings.HasPrefix(path, "/tree") && page.length < rd.names*40 {
		return fmt.Errorf("%s has only %d bytes for %d resources", path, page.length, rd.names)
	}
	return nil
}

// page is an answer that is read slowly, and kept nowhere.
type page struct {
	from   io.Reader
	pause  time.Duration
	reads  int
	length int
}

func (p *page) Read(piece []byte) (int, error) {
	if p.reads++; p.reads%16 == 0 {
		time.Sleep(p.pause)
	}
	n, err := p.from.Read(piece)
	p.length += n
	return n, err
}
