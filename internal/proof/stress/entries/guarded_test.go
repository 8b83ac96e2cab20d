package entries

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/rules"
)

// However guarded code ends, its call has exited, its permit is back, and it is counted as failed
// if it failed. known bug 55, 57, 63
func TestHoweverGuardedCodeEnds(t *testing.T) {
	for _, end := range []struct {
		name   string
		fn     func(context.Context) error
		failed int64
		err    error
		panics bool
		exits  bool // the goroutine ends
	}{
		{name: "returns", fn: func(context.Context) error { return nil }},
		{name: "fails", fn: func(context.Context) error { return errBroken }, failed: 1, err: errBroken},
		{name: "panics", fn: func(context.Context) error { panic(errBroken) }, failed: 1, panics: true},
		{name: "faults", fn: func(context.Context) error { var r *engine.Resource; return errors.New(r.Name()) }, failed: 1, panics: true},
		{name: "panics with nil", fn: func(context.Context) error { panic(nil) }, failed: 1, panics: true},
		{name: "ends its goroutine", fn: func(context.Context) error { runtime.Goexit(); return nil }, exits: true},
		{name: "is not there", failed: 1, panics: true},
		{name: "panics, and then ends its goroutine", fn: func(context.Context) error {
			defer runtime.Goexit()
			panic(errBroken)
		}, exits: true},
	} {
		for _, nested := range []bool{false, true} {
			for _, none := range []bool{false, true} {
				for name, run := range map[string]func(context.Context, *api.Guard, string, func(context.Context) error) error{
					"Do": func(ctx context.Context, g *api.Guard, resource string, fn func(context.Context) error) error {
						return g.Do(ctx, resource, fn)
					},
					"Call": func(ctx context.Context, g *api.Guard, resource string, fn func(context.Context) error) error {
						if fn == nil {
							_, err := api.CallOn[int](ctx, g, resource, nil)
							return err
						}
						_, err := api.CallOn(ctx, g, resource, func(ctx context.Context) (int, error) { return 0, fn(ctx) })
						return err
					},
					"ExitOn": func(ctx context.Context, g *api.Guard, resource string, fn func(context.Context) error) (err error) {
						e, err := g.Entry(ctx, resource)
						require.NoError(t, err)
						defer e.ExitOn(&err)
						return fn(e.Context())
					},
				} {
					t.Run(name+"/"+end.name, func(t *testing.T) {
						g, err := api.New(api.Config{Logger: silent})
						require.NoError(t, err)
						books.Keep(t, g.Engine())
						require.NoError(t, g.LoadRules(rules.Set{Flow: []flow.Rule{
							{Resource: "outer", Threshold: 1, Metric: flow.Concurrency}, {Resource: "inner", Threshold: 1, Metric: flow.Concurrency},
						}}))
						var ctx context.Context
						if !none {
							ctx = t.Context()
						}
						for round := range int64(3) { // there is one permit
							returned := false
							reason := apart(func() {
								var err error
								if nested {
									err = run(ctx, g, "outer", func(ctx context.Context) error { return run(ctx, g, "inner", end.fn) })
								} else {
									err = run(ctx, g, "outer", end.fn)
								}
								returned = true
								assert.Equal(t, end.err, err)
							})
							assert.Equal(t, end.panics, reason != nil)
							assert.Equal(t, !end.panics && !end.exits, returned)
							for _, resource := range []string{"outer", "inner"} {
								r, _ := g.Engine().FindResource(resource)
								calls := round + 1
								if resource == "inner" && !nested {
									calls = 0
								}
								totals := r.Totals()
								assert.Equal(t, calls, totals.Exited)
								assert.Equal(t, calls*end.failed, totals.Exception)
								if resource == "outer" {
									assert.Zero(t, r.Meters().Semaphore(nil).InUse())
								}
							}
						}
					})
				}
			}
		}
	}
}
