package engine_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/engine"
)

func TestRefusalsAreKeptForWhoeverAsks(t *testing.T) {
	e, clock := newEngine(t, engine.Config{}, flow.Rule{ID: "none", Resource: "orders"})
	refuse := func(origin string) {
		_, err := e.Enter(engine.WithOrigin(engine.WithContext(t.Context(), "web"), origin), "orders", nil)
		require.ErrorIs(t, err, core.ErrBlocked)
	}
	refuse("early")
	require.Empty(t, e.Refusals("orders"), "nobody has asked yet")

	release, another := e.KeepRefusals(), e.KeepRefusals()
	require.Empty(t, e.Refusals("orders"))
	require.Empty(t, e.Refusals("no such"))
	at := time.Unix(0, clock.Now()).UTC()
	refuse("acme")
	clock.Advance(400 * time.Millisecond)
	refuse("globex")
	clock.Advance(400 * time.Millisecond)
	refuse("acme")
	clock.Advance(400 * time.Millisecond)
	refuse("acme") // of another second
	var got []string
	for _, r := range e.Refusals("orders") {
		assert.Equal(t, "none", r.Block.Rule)
		assert.Equal(t, "web", r.Context)
		got = append(got, fmt.Sprintf("%s %d %v-%v", r.Origin, r.Count, r.First.Sub(at), r.Last.Sub(at)))
	}
	assert.Equal(t, []string{"acme 1 1.2s-1.2s", "acme 2 0s-800ms", "globex 1 400ms-400ms"}, got)

	release()
	release()
	require.Len(t, e.Refusals("orders"), 3, "somebody still wants them")
	for i := range 40 {
		clock.Advance(2 * time.Second)
		refuse(fmt.Sprint(i))
	}
	all := e.Refusals("orders")
	require.Len(t, all, 16)
	assert.Equal(t, "39", all[0].Origin)
	assert.Equal(t, "24", all[15].Origin)

	another()
	require.Empty(t, e.Refusals("orders"))
	release = e.KeepRefusals()
	defer release()
	require.Empty(t, e.Refusals("orders"), "the earlier rejections are gone")
}

// Calls rejected concurrently record as many rejections as they can, and none waits for another.
func TestManyRefusalsAtOnce(t *testing.T) {
	e, _ := newEngine(t, engine.Config{}, flow.Rule{ID: "none", Resource: "orders"})
	defer e.KeepRefusals()()
	const callers, each = 8, 500
	var done sync.WaitGroup
	for range callers {
		done.Go(func() {
			for range each {
				_, err := e.Enter(t.Context(), "orders", nil)
				assert.Error(t, err)
				e.Refusals("orders")
			}
		})
	}
	done.Wait()
	all := e.Refusals("orders")
	require.Len(t, all, 1)
	assert.LessOrEqual(t, all[0].Count, int64(callers*each))
	assert.Positive(t, all[0].Count)
}
