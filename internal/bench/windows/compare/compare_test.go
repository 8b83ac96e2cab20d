package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/proof/tables"
)

func TestMain(m *testing.M) { books.Main(m) }

const renew = "go run ./internal/bench/windows/compare -write"

// The page shows the current results of the traffic.
func TestPageIsCurrent(t *testing.T) {
	kept, err := tables.Kept("../../../../"+page, "traffic")
	require.NoError(t, err)
	assert.Equal(t, "\n```text\n"+trafficTable()+"```\n\n", kept, renew)

	shown, err := os.ReadFile("../../../../" + picture)
	require.NoError(t, err)
	assert.Equal(t, drawn(), string(shown), renew)
}

// The bounds that the page relies on.
func TestBounds(t *testing.T) {
	for _, r := range results() {
		for i, o := range r.outcomes {
			switch what := r.name + ", " + []string{"steady", "edge", "on/off", "Zipf"}[i]; {
			case strings.HasPrefix(r.name, "strict"), strings.HasPrefix(r.name, "list"), r.name == best:
				assert.LessOrEqual(t, o.worst(), limit, what)
				assert.LessOrEqual(t, r.used[i], 1.0, what)
			default:
				assert.LessOrEqual(t, o.worst(), 2*limit, what)
			}
		}
	}
	assert.Equal(t, 3, busiest([]int64{0, 1e8, 9.99e8, 1e9, 1e9 + 1e8 + 1}), "a second later is no longer the same second")
}
