//go:build sim

package engines

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/lending"
	"github.com/penstock-go/penstock/internal/proof/trial"
	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/system"
)

// lines records which cache lines a call touches through atomics and mutexes, and from where. It is
// a scheduler that changes nothing.
type lines struct {
	touched map[uintptr]string
	written map[uintptr]string
}

const cacheLine = 64

func (l *lines) note(object any, write bool) {
	if _, pool := object.(*shared.Pool); pool || object == nil {
		return // each processor has its own pool
	}
	line := reflect.ValueOf(object).Pointer() / cacheLine
	var by []string
	pcs := make([]uintptr, 6)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for f, more := frames.Next(); more && len(by) < 2; f, more = frames.Next() {
		if name := f.Function[strings.LastIndexByte(f.Function, '/')+1:]; !strings.HasPrefix(name, "shared.") && !strings.HasPrefix(name, "engines.") {
			by = append(by, fmt.Sprintf("%s:%d", name, f.Line))
		}
	}
	where := fmt.Sprintf("%T in %s", object, strings.Join(by, " < "))
	l.touched[line] = where
	if write {
		l.written[line] = where
	}
}

func (l *lines) Access(object any, write bool) { l.note(object, write) }
func (l *lines) Lock(mutex any)                { l.note(mutex, true) }
func (l *lines) Took(any)                      {}
func (l *lines) Unlocked(any)                  {}

func watch(call func()) *lines {
	l := &lines{make(map[uintptr]string), make(map[uintptr]string)}
	shared.Schedule = l
	defer func() { shared.Schedule = nil }()
	call()
	return l
}

// A refused call writes to no cache line that a call on another lane touches, whichever rule
// refuses it; otherwise processors would wait for each other all the time when most calls are
// refused. The values of hotspot rules have a mutex each, and are exempt. Plain reads, as opposed
// to atomics, are not seen here: see TestTallyLaneTouchesItsOwnCell in package stat. known bug 110
func TestSimRefusalsShareNothing(t *testing.T) {
	const hot = "hot"
	type setup = func(b *engine.SnapshotBuilder) error
	flowRule := func(r flow.Rule) setup {
		r.Resource = hot
		return func(b *engine.SnapshotBuilder) error { return flow.Compile(b, []flow.Rule{r}) }
	}
	for name, c := range map[string]struct {
		rules setup
		pass  int // calls that are admitted first, and stay
		opts  []engine.Option
		lent  bool // to lanes, by windows
	}{
		"no call is admitted":          {rules: flowRule(flow.Rule{Threshold: 0})},
		"a limit that is used up":      {rules: flowRule(flow.Rule{Threshold: 3}), pass: 3},
		"a limit partly held by lanes": {rules: flowRule(flow.Rule{Threshold: 3}), pass: 3, lent: true},
		"a rule whose window has its own shape": {
			rules: flowRule(flow.Rule{Threshold: 3, Buckets: 5}), pass: 3,
		},
		"concurrency": {rules: flowRule(flow.Rule{Metric: flow.Concurrency, Threshold: 3}), pass: 3},
		"isolation": {
			rules: func(b *engine.SnapshotBuilder) error {
				return isolation.Compile(b, []isolation.Rule{{Resource: hot, Threshold: 3}})
			}, pass: 3,
		},
		"system rule": {
			rules: func(b *engine.SnapshotBuilder) error {
				return system.Compile(b, []system.Rule{{Metric: system.QPS, Threshold: 3}})
			}, pass: 3, opts: []engine.Option{engine.Inbound()},
		},
		"authority": {
			rules: func(b *engine.SnapshotBuilder) error {
				return authority.Compile(b, []authority.Rule{{Resource: hot, Origins: []string{"app"}}})
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			lending.Always = c.lent
			defer func() { lending.Always = false }()
			e, err := engine.NewEngine(engine.Config{Clock: clocks.NewManual(time.Unix(0, start)), Chain: trial.Chain(), Logger: silent})
			require.NoError(t, err)
			require.NoError(t, e.Update(c.rules))
			enter := func(resource string, opts ...engine.Option) engine.Entry {
				entry, err := e.Enter(context.Background(), resource, opts)
				require.NoError(t, err)
				return entry
			}
			for range c.pass {
				defer enter(hot, c.opts...).Exit()
			}
			refuse := func() {
				_, err := e.Enter(context.Background(), hot, c.opts)
				require.Error(t, err)
			}
			onAnother := func() *lines { // the pool hands out the last one returned, and each has its own lane
				defer enter("other").Exit()
				return watch(refuse)
			}
			refuse()
			onAnother()
			one, another := watch(refuse), onAnother()
			require.NotEmpty(t, one.written, "it is counted")
			for line, where := range one.written {
				if also, is := another.touched[line]; is {
					t.Errorf("a line that is shared: written by %s, touched by %s", where, also)
				}
			}
			for line, where := range another.written {
				if also, is := one.touched[line]; is {
					t.Errorf("a line that is shared: written by %s, touched by %s", where, also)
				}
			}
		})
	}
}
