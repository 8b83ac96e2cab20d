package rules

import (
	"bytes"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStatus(t *testing.T) {
	onFakeTime(t, func(t *testing.T, path string, fake *fakeNotifier, p *probe) {
		start := time.Now()
		first := p.Status()
		assert.Regexp(t, "^[0-9a-f]{12}$", first.Hash)
		assert.Equal(t, Status{Source: path, Watching: true, OK: true, Hash: first.Hash, Rules: 1,
			Confirmed: first.LastSuccess, LastSuccess: first.LastSuccess, Successes: 1}, first)

		write(t, path, []byte("flow: 1"))
		fake.touch()
		after(settled)
		want := first
		want.OK, want.Failures = false, 1
		want.LastFailure, want.LastError = start.Add(settled), (<-p.reloads).Err
		assert.Equal(t, want, p.Status())

		write(t, path, rulesOfSize(3))
		fake.touch()
		after(settled)
		r := <-p.reloads
		want.OK, want.Successes, want.Rules = true, 2, 3
		want.LastSuccess, want.Confirmed, want.Hash = r.Time, r.Time, r.Hash
		assert.Equal(t, want, p.Status())
		assert.NotEqual(t, first.Hash, r.Hash)

		after(time.Minute)
		assert.Less(t, time.Since(p.Status().Confirmed), defaultTuning.poll+settled, "a look that finds the same confirms it")

		want.Confirmed = p.Status().Confirmed
		p.Close()
		want.Watching = false
		assert.Equal(t, want, p.Status(), "all else is as it was")
	})
}

func TestReloadLogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "rules.yaml")
		write(t, path, rulesOfSize(1))
		fake := newFake()
		tune := defaultTuning
		tune.notify = fake.open
		var log bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&log, nil))
		w, err := watch(t.Context(), path, func(Set) error { return nil }, WatchConfig{Logger: logger}, tune)
		require.NoError(t, err)
		write(t, path, []byte("flow: 1\nfloww: 2"))
		fake.refuse(errNoSpace)
		fake.touch()
		after(time.Second)
		fake.refuse(nil)
		fake.errors <- fsnotify.ErrEventOverflow
		after(time.Second)
		first := w.Status().Hash
		w.Close()
		lines := strings.SplitAfter(strings.TrimSpace(log.String()), "\n")
		for i, want := range []string{
			`level=INFO msg="penstock: rules loaded" source=` + path + ` hash=` + first + ` revision=1 rules=1 change="+1 ~0 -0"` + "\n",
			`level=WARN msg="penstock: watching rules: no change notifications, polling instead" source=` + path + ` error="no space left on device"`,
			`level=ERROR msg="penstock: rules not loaded, keeping the last good ones" source=` + path + ` error="` + path + `:1:7: flow: must be a list of rules, not 1\n`,
			`level=WARN msg="penstock: watching rules: change notifications may be lost" source=` + path + ` error="fsnotify: queue or buffer overflow"`,
			`level=INFO msg="penstock: watching rules: change notifications work again" source=` + path,
		} {
			require.Greater(t, len(lines), i)
			assert.Contains(t, lines[i], want)
		}
		assert.Len(t, lines, 5)
	})
}

// A reload logs the differences, field by field, of a limited number of rules.
func TestReloadLogsWhatChanged(t *testing.T) {
	many := func(threshold int) (file string) {
		for i := range 15 {
			file += fmt.Sprintf("  - {id: r%d, resource: a%d, threshold: %d}\n", i, i, threshold)
		}
		return "flow:\n" + file
	}
	var long strings.Builder
	for i := range 100 {
		long.WriteString(fmt.Sprintf("caller-%d, ", i))
	}
	for _, tt := range []struct{ name, before, after, what string }{
		{"a threshold", "flow: [{id: orders, resource: GET /orders, threshold: 100}]", "flow: [{id: orders, resource: GET /orders, threshold: 200}]",
			`change="+0 ~1 -0" what="~ flow orders: threshold 100 -> 200"`},
		{"fields, and rules added and removed", "flow: [{id: orders, resource: a, threshold: 100}, {resource: old, threshold: 1}]",
			"flow: [{id: orders, resource: a, threshold: 100, behavior: throttle}]\nisolation: [{id: room, resource: b, threshold: 5}]",
			`change="+1 ~1 -1" what="+ isolation room; ~ flow orders: buckets 50 -> 0, behavior reject -> throttle, maxWait 0s -> 500ms; - flow flow:old"`},
		{"a cluster, which is no rule", "flow: [{id: orders, resource: a, threshold: 1}]",
			"cluster: {members: 3}\nflow: [{id: orders, resource: a, threshold: 1}, {id: more, resource: b, threshold: 1}]",
			`rules=2 change="+1 ~0 -0 and cluster" what="+ flow more; + cluster cluster"`},
		{"only the text", "flow: [{resource: a, threshold: 1}]", "flow: [{resource: a, threshold: 1}] # as before", `change="+0 ~0 -0"` + "\n"},
		{"many", many(1), many(2), `; ~ flow r9: threshold 1 -> 2; and 5 more"`},
		{"much", "authority: [{id: a, resource: a, origins: [b]}]", "authority: [{id: a, resource: a, origins: [" + long.String() + "c]}]", `what="~ authority a: origins \"[\\\"b\\\"]\" -> \"[\\\"caller-0`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "rules.yaml")
				write(t, path, []byte(tt.before))
				fake := newFake()
				tune := defaultTuning
				tune.notify = fake.open
				var log bytes.Buffer
				w, err := watch(t.Context(), path, func(Set) error { return nil },
					WatchConfig{Logger: slog.New(slog.NewTextHandler(&log, nil))}, tune)
				require.NoError(t, err)
				log.Reset()
				write(t, path, []byte(tt.after))
				fake.touch()
				after(time.Second)
				hash := w.Status().Hash
				w.Close()
				assert.Contains(t, log.String(), ` msg="penstock: rules loaded" source=`+path+` hash=`+hash+` revision=`)
				assert.Contains(t, log.String(), tt.what)
				assert.NotRegexp(t, "[0-9a-f]{13}", log.String())
				assert.Less(t, log.Len(), 1000)
			})
		})
	}
}
