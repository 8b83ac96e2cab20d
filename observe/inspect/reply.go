package inspect

import (
	"bufio"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

const (
	plainText = "text/plain; charset=utf-8"
	jsonText  = "application/json; charset=utf-8"
	yamlText  = "application/yaml; charset=utf-8"
)

// A reply is sent in chunks. The reader must take each within patience, and must not keep the handler
// waiting for longer than patience plus pace for each chunk, which means reading 64 KiB per second. So
// a reader that stalls can't hold a copy for long. A server's WriteTimeout applies as well.
const (
	chunk    = 32 << 10
	patience = 10 * time.Second
	pace     = 500 * time.Millisecond
)

// reply sends the output of write. For HEAD, it only counts its bytes.
func reply(w http.ResponseWriter, r *http.Request, contentType string, write func(io.Writer) error) {
	w.Header().Set("Content-Type", contentType)
	if r.Method == http.MethodHead {
		var size counter
		if write(&size) == nil {
			w.Header().Set("Content-Length", strconv.FormatInt(int64(size), 10))
		}
		return
	}
	out := chunks.Get().(*bufio.Writer)
	out.Reset(newPatient(w, r))
	defer func() {
		out.Reset(nil) // keeps nothing of this reply
		chunks.Put(out)
	}()
	if write(out) == nil {
		_ = out.Flush() // fails when the client has disconnected
	}
}

var chunks = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, chunk) }}

// counter counts written bytes.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// patient is a reply whose reader must keep up.
type patient struct {
	http.ResponseWriter
	control *http.ResponseController
	left    time.Duration // how long the handler still waits for the reader
	latest  time.Time     // the end of the server's WriteTimeout; zero if it has none
}

func newPatient(w http.ResponseWriter, r *http.Request) *patient {
	p := &patient{ResponseWriter: w, control: http.NewResponseController(w), left: patience}
	if server, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok && server.WriteTimeout > 0 {
		p.latest = time.Now().Add(server.WriteTimeout)
	}
	return p
}

func (p *patient) Write(b []byte) (written int, err error) {
	for piece := range slices.Chunk(b, chunk) {
		begin := time.Now()
		deadline := begin.Add(min(patience, p.left))
		if !p.latest.IsZero() && deadline.After(p.latest) {
			deadline = p.latest
		}
		_ = p.control.SetWriteDeadline(deadline) // a test or a filter may not support deadlines
		n, err := p.ResponseWriter.Write(piece)
		written += n
		if err != nil {
			return written, err
		}
		p.left += pace - time.Since(begin)
	}
	return written, nil
}

// busy replies that there are too many readers.
func busy(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, "too many readers, or too slow ones: try again", http.StatusServiceUnavailable)
}
