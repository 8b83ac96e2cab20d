package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/bench/report"
	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/proof/tables"
)

func TestMain(m *testing.M) { books.Main(m) }

// The page shows the current results, and ours keeps what the page promises: whenever a call is
// admitted, the last 60 seconds hold at most the limit, so it is exceeded only by charges that come
// later. It loses nothing, and uses nearly as much as with a window that forgets each tick by itself.
func TestPageIsCurrent(t *testing.T) {
	calls, p, w := trace(), ours(), &window{}
	own := play(policy{func(entered int, c call) func(int) {
		exit := p.enter(entered, c)
		if exit == nil {
			return nil
		}
		w.add(entered, entered, estimate)
		require.LessOrEqual(t, w.total, int64(limit))
		return func(now int) {
			exit(now)
			w.settle(now, entered, c.used-estimate)
		}
	}, p.leaked}, calls)
	assert.Zero(t, own.leaked)
	assert.GreaterOrEqual(t, own.used, 0.97*play(reserved(false), calls).used)

	kept, err := tables.Kept("../../../"+page, "costs")
	require.NoError(t, err)
	assert.Equal(t, report.Framed(table(calls, own)), kept, "go run ./costs -write")
}
