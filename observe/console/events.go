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

// The limits for a lagging client of /api/events: the number of buffered frames, and the time to send
// a frame.
const (
	frameTime   = 5 * time.Second
	frameBuffer = 4
	maxReported = 100 // breaker changes, and bursts, in one frame
	restSeconds = 5   // without refusals, after which the next refusal begins a burst
	settling    = 20 * time.Millisecond
)

// hub makes one frame per second for all streams. It runs only while there are streams.
//
// Every frame is made once and added to each stream's buffer without waiting. A stream ends if its
// buffer is full, or if it doesn't take a frame within frameTime; so a slow stream doesn't delay
// others, and no frame is kept for longer than a few seconds.
type hub struct {
	console *console
	running sync.WaitGroup
	quit    chan struct{}

	mu      sync.Mutex // guards the fields below it
	active  bool       // a goroutine makes frames
	streams map[*stream]struct{}
}

// stream is one client.
type stream struct {
	frames chan []byte // closed when the stream is cut off; sent to and closed under the hub's lock
}

func newHub(c *console) *hub {
	return &hub{console: c, quit: make(chan struct{}), streams: make(map[*stream]struct{})}
}

// join adds a stream, or returns nil if there are too many.
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

// close stops making frames.
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

// shielded returns the next frame, or nil if user code panicked while making it, such as a clock or an
// error of a source. The following frame then includes its events.
func (h *hub) shielded(f *frames) (frame []byte) {
	h.console.guard.Engine().Shield(func() { frame = f.next() })
	return frame
}

// send adds a frame to every stream. It returns false if there is no client; the next client then
// starts afresh.
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

// serveEvents streams frames and events until the client disconnects or is too slow.
func (c *console) serveEvents(w http.ResponseWriter, r *http.Request) error {
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", streamType)
		return nil
	}
	s := c.events.join()
	if s == nil {
		w.Header().Set("Retry-After", "10")
		return refuse(http.StatusServiceUnavailable, "the limit of %d streams is reached (Config.Streams)", c.config.Streams)
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

// frames makes the frames. One goroutine uses it.
type frames struct {
	*console
	last     int64            // the latest reported second
	blocked  map[string]int64 // the time of each resource's latest refusal; recent ones only
	changed  uint64           // number of breaker changes reported
	revision uint64
	failure  time.Time
}

// newFrames returns frames that start now: earlier events are not reported.
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

// next returns the frame of the second that has just ended, with the events since the previous frame,
// or nil if the second hasn't ended yet.
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
			if _, lately := f.blocked[r.Name()]; !lately && len(bursts) < maxReported {
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
	for _, one := range changes[max(0, len(changes)-maxReported):] {
		b = appendEvent(b, "breaker", one)
	}
	return b
}

func (f *frames) alertsNow() []alert {
	f.making.Lock()
	defer f.making.Unlock()
	return f.alerts(time.Now())
}

// burst reports that a resource started to refuse calls.
type burst struct {
	At       time.Time `json:"at"`
	Resource string    `json:"resource"`
	Blocked  int64     `json:"blocked"` // in that second
}

// reload reports that new rules are in force, or that a source could not be loaded.
type reload struct {
	At       time.Time `json:"at"`
	Revision uint64    `json:"revision"`
	Hash     string    `json:"hash,omitempty"`
	Change   string    `json:"change,omitempty"` // such as "+1 ~0 -0"
	Sources  []string  `json:"sources,omitempty"`
	Source   string    `json:"source,omitempty"` // the source that failed
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
		return b // a number that JSON can't express; it doesn't occur
	}
	return append(append(append(append(append(b, "event: "...), name...), "\ndata: "...), data...), "\n\n"...)
}

// quote returns a text as JSON.
func quote(text string) []byte {
	data, _ := json.Marshal(text) // strings can always be encoded
	return data
}
