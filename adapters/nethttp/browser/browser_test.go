// Package browser_test uses servers guarded by adapters/nethttp from a real browser.
package browser_test

import (
	"bufio"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/conformance"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/proof/patience"
)

// page reads three events, has a WebSocket echo a text, asks for a refused page, and reports all of
// it.
const page = `<!doctype html><title>page</title><script>
const events = new Promise((ok, no) => {
	const seen = [], from = new EventSource("/events");
	from.onmessage = e => { seen.push(e.data); if (seen.length == 3) { from.close(); ok(seen.join(",")); } };
	from.onerror = no;
});
const echo = new Promise((ok, no) => {
	const socket = new WebSocket("ws://" + location.host + "/socket");
	socket.onopen = () => socket.send("hello");
	socket.onmessage = e => { socket.close(); ok(e.data); };
	socket.onerror = no;
});
const refused = fetch("/closed").then(r => r.status + " " + r.headers.get("Content-Type"));
Promise.all([events, echo, refused])
	.then(all => fetch("/seen", { method: "POST", body: all.join("; ") }), e => fetch("/seen", { method: "POST", body: "it failed" }));
</script>`

func TestBrowser(t *testing.T) {
	binary := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			binary = path
			break
		}
	}
	if binary == "" {
		t.Skip("NOT TESTED WITH A BROWSER: chromium is not installed (Debian: apt-get install chromium)")
	}
	g, err := api.New(api.Config{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer g.Close()
	require.NoError(t, g.LoadRules(api.RuleSet{Flow: []flow.Rule{{Resource: "GET /closed", Threshold: 0}}}))
	seen, left := make(chan string, 1), make(chan struct{}, 1)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, page) })
	mux.HandleFunc("GET /events", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for n := range 3 {
			fmt.Fprintf(w, "data: %d\n\n", n)
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done() // until the browser closes it
		left <- struct{}{}
	})
	mux.HandleFunc("GET /socket", func(w http.ResponseWriter, r *http.Request) { assert.NoError(t, echo(w, r)) })
	mux.HandleFunc("GET /closed", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /seen", func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		seen <- string(text)
	})
	url := conformance.Serve(t, nethttp.Handler(mux, nethttp.On(g)))
	dir, err := os.MkdirTemp("", "chromium") //nolint:usetesting // what the browser still writes must not fail the test
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	browser := exec.Command(binary, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--user-data-dir="+dir, "--remote-debugging-port=0", url)
	require.NoError(t, browser.Start())
	defer func() {
		_ = browser.Process.Kill()
		_ = browser.Wait()
	}()
	select {
	case text := <-seen:
		assert.Equal(t, "0,1,2; hello; 429 application/problem+json", text)
	case <-time.After(patience.Of(t)):
		require.Fail(t, "the browser tells nothing")
	}
	<-left
	for _, c := range []struct {
		name        string
		long, block int64
	}{{"GET /events", 1, 0}, {"GET /socket", 0, 0}, {"GET /closed", 0, 1}} {
		require.Eventually(t, func() bool {
			n, ok := g.Tree().Resource(c.name)
			return ok && n.InFlight == 0 && n.Lifetime.LongLived == c.long && n.Lifetime.Block == c.block
		}, patience.Of(t), time.Millisecond, c.name)
	}
}

// echo takes over the connection as a WebSocket does and sends back the first message, a short
// text.
func echo(w http.ResponseWriter, r *http.Request) error {
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return err
	}
	defer conn.Close()
	key := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	fmt.Fprintf(rw, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n",
		base64.StdEncoding.EncodeToString(key[:]))
	if err := rw.Flush(); err != nil {
		return err
	}
	text, err := frame(rw.Reader)
	if err != nil {
		return err
	}
	_, _ = rw.Write(append([]byte{0x81, byte(len(text))}, text...))
	if err := rw.Flush(); err != nil {
		return err
	}
	_, _ = frame(rw.Reader) // the close frame
	return nil
}

// frame reads a client's short, masked frame.
func frame(from *bufio.Reader) ([]byte, error) {
	var head [6]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return nil, err
	}
	if head[1] < 0x80 || head[1] > 0x80+125 {
		return nil, errors.New("the frame is not short, or has no mask")
	}
	text := make([]byte, head[1]-0x80)
	if _, err := io.ReadFull(from, text); err != nil {
		return nil, err
	}
	for i := range text {
		text[i] ^= head[2+i%4]
	}
	return text, nil
}
