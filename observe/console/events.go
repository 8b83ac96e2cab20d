package console

import (
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/penstock-go/penstock/internal/shown"
	"github.com/penstock-go/penstock/node"
)

// How far a client of /api/events may be behind: this many frames, and this long with one of them.
const (
	frameTime   = 5 * time.Second
	frameBuffer = 4
	maxTold     = 100 // changes of breakers, and bursts, that one frame reports
	restSeconds = 5   // without refusals, after which the next is a burst
	settling    = 20 * time.Millisecond
)

// hub makes a frame a second for all streams. Nothing of it runs while there is none.
//
// Every frame is made once and handed to each stream's buffer without waiting. A stream whose
// buffer is full is cut off, and one that doesn't take a frame within frameTime ends by itself; so
// a slow stream delays no other, and no frame is kept for longer than a few seconds.
type hub struct {
	console *console
	running sync.WaitGroup
	quit    chan struct{}

	mu      sync.Mutex
	active  bool // a goroutine makes frames
	streams map[*stream]struct{}
}

// stream is one client.
type stream struct {
	frames chan []byte // closed when it is cut off; under the hub's lock, as everything that is sent
}

func newHub(c *console) *hub {
	return &hub{console: c, quit: make(chan struct{}), streams: make(map[*stream]struct{})}
}

// join begins a stream; nil if there are too many.
func (h *hub) join() *stream {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.streams) == h.console.config.Streams {
		return nil
	}
	s := &stream{make(chan []byte, frameBuffer)}
	h.streams[s] = struct{}{}
	if !h.active {
		h.active = true
		h.running.Go(h.run)
	}
	return s
}

func (h *hub) leave(s *stream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.streams, s)
}

// close ends what makes frames.
func (h *hub) close() {
	close(h.quit)
	h.running.Wait()
}

// run makes a frame soon after each second of the engine's clock, until no client is left.
func (h *hub) run() {
	frames := newFrames(h.console)
	for {
		now := h.console.guard.Now()
		rest := floorSecond(now) + int64(time.Second) - now
		select {
		case <-h.quit:
			return
		case <-time.After(time.Duration(rest) + settling):
		}
		if !h.send(h.shielded(frames)) {
			return
		}
	}
}

// shielded is the next frame, nil where code of the user's panicked that figures come from, such as a
// clock or an error of a source: the next frame tells what this one didn't.
func (h *hub) shielded(f *frames) (frame []byte) {
	h.console.guard.Engine().Shield(func() { frame = f.next() })
	return frame
}

// send hands a frame to every stream. It returns false if there is no client, and then the next
// client starts from nothing.
func (h *hub) send(frame []byte) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.streams {
		if frame == nil {
			break
		}
		select {
		case s.frames <- frame:
		default:
			close(s.frames)
			delete(h.streams, s)
		}
	}
	h.active = len(h.streams) > 0
	return h.active
}

// serveEvents streams frames and events until the client has gone or is too slow.
func (c *console) serveEvents(w http.ResponseWriter, r *http.Request) error {
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", streamType)
		return nil
	}
	s := c.events.join()
	if s == nil {
		w.Header().Set("Retry-After", "10")
		return refuse(http.StatusServiceUnavailable, "there are %d streams already: Config.Streams allows no more", c.config.Streams)
	}
	defer c.events.leave(s)
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{}) // the request has been read; a test's recorder has none
	w.Header().Set("Content-Type", streamType)
	send := func(frame []byte) bool {
		_ = control.SetWriteDeadline(time.Now().Add(frameTime))
		_, err := w.Write(frame)
		return err == nil && control.Flush() == nil
	}
	for ok := send([]byte(": begins\n\n")); ok; {
		select {
		case <-r.Context().Done():
			return nil
		case frame, more := <-s.frames:
			ok = more && send(frame)
		}
	}
	return nil
}

const streamType = "text/event-stream"

// frames makes what is streamed. It is used by one goroutine.
type frames struct {
	*console
	last     int64            // the newest second that was reported
	blocked  map[string]int64 // when a resource refused calls last; those that did lately
	changed  uint64           // how many changes of breakers were reported
	revision uint64
	failure  time.Time
}

// newFrames begins: what was before is no event.
func newFrames(c *console) *frames {
	f := &frames{console: c, blocked: make(map[string]int64)}
	_, f.changed = c.changes.since(0)
	status := c.guard.Status()
	f.revision, f.failure = status.Number, status.LastFailure
	f.last = floorSecond(c.guard.Now()) - int64(time.Second)
	c.each(func(r *node.ClusterNode, _ bool) {
		if n := r.LastSecond(f.last + int64(time.Second)); n.Block > 0 {
			f.blocked[r.Name()] = f.last
		}
	})
	return f
}

// next is the frame of the second that is over, with what happened since the last one; nil if none is
// over yet.
func (f *frames) next() []byte {
	read := f.reader()
	second := read.end - int64(time.Second)
	if second <= f.last {
		return nil
	}
	f.last = second
	b := append([]byte("event: frame\ndata: {\"at\":"), quote(read.at().Format(time.RFC3339Nano))...)
	b = strconv.AppendInt(append(b, `,"endUnix":`...), second/int64(time.Second), 10)
	b = strconv.AppendInt(append(b, `,"waiting":`...), f.guard.Waiting(), 10)
	if alerts := f.alertsNow(); len(alerts) > 0 {
		if text, err := json.Marshal(alerts); err == nil {
			b = append(append(b, `,"alerts":`...), text...)
		}
	}
	b = append(b, `,"resources":[`...)
	var bursts []burst
	rows := 0
	f.each(func(r *node.ClusterNode, overflow bool) {
		counts, inFlight := r.LastSecond(read.now), r.InFlight()
		if counts.Block > 0 {
			if _, lately := f.blocked[r.Name()]; !lately && len(bursts) < maxTold {
				bursts = append(bursts, burst{read.at(), r.Name(), counts.Block})
			}
			f.blocked[r.Name()] = second
		}
		if counts.Total() == 0 && counts.Exited == 0 && inFlight == 0 {
			return
		}
		if rows++; rows > 1 {
			b = append(b, ',')
		}
		b = append(append(b, '['), quote(r.Name())...)
		for _, n := range [...]int64{counts.Pass, counts.Block, counts.Complete, counts.Exception} {
			b = strconv.AppendInt(append(b, ','), n, 10)
		}
		b = strconv.AppendFloat(append(b, ','), avgRT(&counts), 'g', -1, 64)
		b = strconv.AppendInt(append(b, ','), inFlight, 10)
		if overflow {
			b = append(b, ",1"...)
		} else {
			b = append(b, ",0"...)
		}
		if escaped := shown.Escaped(r.Name()); escaped != "" {
			b = append(append(b, ','), quote(escaped)...)
		}
		b = append(b, ']')
	})
	b = append(b, "]}\n\n"...)
	for name, at := range f.blocked {
		if second-at > restSeconds*int64(time.Second) {
			delete(f.blocked, name)
		}
	}
	for _, one := range bursts {
		b = appendEvent(b, "burst", one)
	}
	b = f.appendReloads(b, read.at())
	changes, total := f.changes.since(f.changed)
	f.changed = total
	for _, one := range changes[max(0, len(changes)-maxTold):] {
		b = appendEvent(b, "breaker", one)
	}
	return b
}

func (f *frames) alertsNow() []alert {
	f.making.Lock()
	defer f.making.Unlock()
	return f.alerts(time.Now())
}

// burst is that a resource began to refuse calls.
type burst struct {
	At       time.Time `json:"at"`
	Resource string    `json:"resource"`
	Blocked  int64     `json:"blocked"` // in that second
}

// reload is that other rules are in force, or that a source could not be loaded.
type reload struct {
	At       time.Time `json:"at"`
	Revision uint64    `json:"revision"`
	Hash     string    `json:"hash,omitempty"`
	Change   string    `json:"change,omitempty"` // as in "+1 ~0 -0"
	Sources  []string  `json:"sources,omitempty"`
	Source   string    `json:"source,omitempty"` // that failed
	Error    string    `json:"error,omitempty"`
}

func (f *frames) appendReloads(b []byte, at time.Time) []byte {
	status := f.guard.Status()
	if status.Number != f.revision {
		f.revision = status.Number
		one := reload{At: at, Revision: status.Number, Hash: status.Hash}
		if all := f.guard.Revisions(); len(all) > 0 {
			last := all[len(all)-1]
			one.Change, one.Sources = last.Change.String(), last.Sources
		}
		b = appendEvent(b, "reload", one)
	}
	if status.LastFailure.After(f.failure) && status.LastError != nil {
		f.failure = status.LastFailure
		one := reload{At: at, Revision: status.Number, Error: status.LastError.Error()}
		for _, s := range status.Sources {
			if s.LastFailure.Equal(status.LastFailure) {
				one.Source = s.Source
			}
		}
		b = appendEvent(b, "reload", one)
	}
	return b
}

func appendEvent(b []byte, name string, v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		return b // a number that JSON doesn't have; it doesn't occur
	}
	return append(append(append(append(append(b, "event: "...), name...), "\ndata: "...), data...), "\n\n"...)
}

// quote is a text as JSON.
func quote(text string) []byte {
	data, _ := json.Marshal(text) // any text can be written
	return data
}
