package sentinel

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/rules"
)

// Log lines are short, regardless of the responses from the address of a dashboard.
func TestAnswersOfADashboardAreBounded(t *testing.T) {
	for _, answer := range []string{
		"HTTP/1.1 500 " + strings.Repeat("x\x1b", 4<<20) + "\r\n\r\n",
		"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2<<20) + "\r\nContent-Length: 2\r\n\r\nno",
		strings.Repeat("\x1bx", 1<<20) + "\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\n" + `{"success":false,"msg":"` + strings.Repeat("x", 1000) + `"}`,
	} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		go func() {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			_, _ = http.ReadRequest(bufio.NewReader(conn))
			_, _ = conn.Write([]byte(answer))
		}()
		to, err := url.Parse("http://" + listener.Addr().String())
		require.NoError(t, err)
		h := newHeart(&checked{}, to, netip.MustParseAddrPort("127.0.0.1:1"), nil)
		err = h.report(t.Context())
		require.Error(t, err)
		assert.Less(t, len(err.Error()), 1_000, "%.100q", answer)
		assert.NotContains(t, err.Error(), "\x1b")
		_ = listener.Close()
	}
}

// Saving many rules logs a short line too.
func TestSavesAreBoundedInTheLog(t *testing.T) {
	l := newLab(t, Config{AllowRuleWrites: true})
	var all []string
	for i := range 10_000 {
		all = append(all, fmt.Sprintf(`{"resource":"r%d","count":1,"grade":1}`, i))
	}
	_, body := l.dashboard().post("setRules", "type", "flow", "data", "["+strings.Join(all, ",")+"]")
	require.Equal(t, "success", body)
	assert.Contains(t, l.log.text(), "and 9990 more")
	for line := range strings.Lines(l.log.text()) {
		assert.Less(t, len(line), 5_000)
	}
}

// faultyStore is a store with a long error.
type faultyStore struct{ Store }

func (faultyStore) Name() string { return "faulty" }
func (faultyStore) Next(context.Context, string) (rules.Document, error) {
	return rules.Document{}, errors.New(strings.Repeat("x", 10_000))
}

// A failed save logs a short line too.
func TestSavesThatFailAreBoundedInTheLog(t *testing.T) {
	l := newLab(t, Config{AllowRuleWrites: true, Store: faultyStore{}})
	status, _ := l.dashboard().post("setRules", "type", "flow", "data", `[{"resource":"a","count":1,"grade":1}]`)
	require.NotEqual(t, http.StatusOK, status)
	assert.Contains(t, l.log.text(), "API rejected")
	for line := range strings.Lines(l.log.text()) {
		assert.Less(t, len(line), 2_000)
	}
}

// slowStore is a store that takes its time.
type slowStore struct {
	Store
	asked, goOn chan struct{}
}

func (s slowStore) Next(ctx context.Context, after string) (rules.Document, error) {
	close(s.asked)
	<-s.goOn
	return s.Store.Next(ctx, after)
}

// Other commands are served while rules are saved.
func TestASaveKeepsNoOtherCommandWaiting(t *testing.T) {
	store := slowStore{rules.File{Path: filepath.Join(t.TempDir(), "rules.yaml")}, make(chan struct{}), make(chan struct{})}
	l := newLab(t, Config{AllowRuleWrites: true, Store: store})
	d := l.dashboard()
	saved := make(chan string)
	go func() {
		_, body := d.post("setRules", "type", "flow", "data", `[{"resource":"a","count":1,"grade":1}]`)
		saved <- body
	}()
	<-store.asked
	status, _ := d.get("cnode", "id", "a") // a failure hangs the test
	assert.Equal(t, http.StatusOK, status)
	close(store.goOn)
	assert.Equal(t, "success", <-saved)
}
