package rules

import (
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/stretchr/testify/require"
)

var errNoSpace = errors.New("no space left on device")

// fakeNotifier reports the events that a test sends.
type fakeNotifier struct {
	mu      sync.Mutex
	dirs    []string
	refusal error // the result of Add
	events  chan fsnotify.Event
	errors  chan error
}

func newFake() *fakeNotifier {
	return &fakeNotifier{events: make(chan fsnotify.Event), errors: make(chan error)}
}

func (f *fakeNotifier) open() (*notifier, error) { return &notifier{f, f.events, f.errors}, nil }

// touch sends an event. Its content doesn't matter.
func (f *fakeNotifier) touch() { f.events <- fsnotify.Event{} }

func (f *fakeNotifier) refuse(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refusal = err
	f.dirs = nil
}

func (f *fakeNotifier) Add(dir string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refusal == nil {
		f.dirs = append(f.dirs, dir)
	}
	return f.refusal
}

func (f *fakeNotifier) Remove(dir string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dirs = slices.DeleteFunc(f.dirs, func(d string) bool { return d == dir })
	return nil
}

func (f *fakeNotifier) WatchList() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.dirs)
}

func (f *fakeNotifier) Close() error {
	close(f.events)
	close(f.errors)
	return nil
}

// onFakeTime runs a test with a watched file that holds one rule.
func onFakeTime(t *testing.T, test func(t *testing.T, path string, fake *fakeNotifier, p *probe)) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "rules.yaml")
		write(t, path, rulesOfSize(1))
		fake := newFake()
		tune := defaultTuning
		tune.notify = fake.open
		p := startProbe(t, path, tune)
		p.waitFor(1)
		<-p.reloads
		test(t, path, fake, p)
		p.Close()
	})
}

// after lets time pass and the watcher work.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// none fails if rules were applied or an outcome was reported since the last check.
func (p *probe) none() {
	p.t.Helper()
	require.Empty(p.t, p.applied)
	require.Empty(p.t, p.reloads)
}

const (
	quiet   = 50 * time.Millisecond
	settled = 2 * quiet // two reads, after a quiet period each
)
