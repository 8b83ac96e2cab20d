package rules

import (
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/proof/patience"
)

// rulesOfSize returns a file with n rules. Files with different counts have different rules, and no part
// of a file is a file that a test writes.
func rulesOfSize(n int) []byte {
	text := []byte("flow:\n")
	for i := range n {
		text = fmt.Appendf(text, "  - {id: %d of %d, resource: a, threshold: %d}\n", i+1, n, n)
	}
	return text
}

// whole returns the argument of rulesOfSize, or -1 for a part of a file.
func whole(set Set) int {
	n := len(set.Flow)
	if n > 0 && set.Flow[n-1].ID != fmt.Sprintf("%d of %d", n, n) {
		return -1
	}
	return n
}

// probe is a Watcher that a test observes.
type probe struct {
	*Watcher
	t       *testing.T
	reloads chan Reload
	applied chan Set
	refuse  chan error // the next result of apply, if any
}

func newProbe(t *testing.T) *probe {
	return &probe{t: t, reloads: make(chan Reload, 10_000), applied: make(chan Set, 10_000), refuse: make(chan error, 1)}
}

func startProbe(t *testing.T, path string, tune tuning) *probe {
	t.Helper()
	p := newProbe(t)
	var err error
	p.Watcher, err = watch(t.Context(), path, p.apply, WatchConfig{OnReload: p.note, Logger: slog.New(slog.DiscardHandler)}, tune)
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return p
}

func (p *probe) note(r Reload) { p.reloads <- r }

func (p *probe) apply(set Set) error {
	select {
	case err := <-p.refuse:
		return err
	default:
	}
	assert.Positive(p.t, whole(set), "half a file was applied, or none")
	p.applied <- set
	return nil
}

// waitFor waits until the rules in force are n.
func (p *probe) waitFor(n int) {
	p.t.Helper()
	late := time.After(patience.Of(p.t))
	for {
		select {
		case set := <-p.applied:
			if whole(set) == n {
				return
			}
		case <-late:
			p.t.Fatalf("a set of %d rules did not come", n)
		}
	}
}

// waitForError waits until a reload fails, and returns the error.
func (p *probe) waitForError() error {
	p.t.Helper()
	late := time.After(patience.Of(p.t))
	for {
		select {
		case r := <-p.reloads:
			if r.Err != nil {
				return r.Err
			}
		case <-late:
			p.t.Fatalf("no error came: %+v", p.Status())
		}
	}
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, data, 0o600))
}

// replace saves as a careful program does: it writes another file and renames it.
func replace(t *testing.T, path string, data []byte) {
	t.Helper()
	write(t, path+".tmp", data)
	require.NoError(t, os.Rename(path+".tmp", path))
}
