package pages_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/clocks"
	"github.com/penstock-go/penstock/rules"
)

type Answer struct{ Tokens int64 }

func complete(context.Context, string) (Answer, error) { return Answer{900}, nil }

// The code on the page on costs.
func chat(ctx context.Context, prompt string) (answer Answer, err error) {
	e, err := api.Entry(ctx, "POST /chat", api.Cost("tokens", 1200))
	if err != nil {
		return answer, err // a *api.BlockError: no room for 1,200 tokens now
	}
	defer e.ExitOn(&err)
	answer, err = complete(ctx, prompt)
	e.Settle("tokens", answer.Tokens) // 0 if it failed: gives back everything
	return answer, err
}

func send(ctx context.Context) error {
	_, err := chat(ctx, "hello")
	return err
}

// The rules on the page admit a hundred answers of 900 tokens a minute, or sixty calls.
func TestCostsShown(t *testing.T) {
	t.Chdir(docs)
	for _, b := range blocks(t, "costs.md") {
		if b.info != "yaml" || strings.HasPrefix(b.text, "hotspot:") {
			continue
		}
		set, err := rules.Parse("costs.yaml", []byte(b.text))
		require.NoError(t, err)
		clock := clocks.NewManual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
		g := newGuard(t, clock)
		defer api.SetDefault(g)()
		require.NoError(t, g.LoadRules(set))
		for range 60 {
			require.NoError(t, send(t.Context()))
		}
		require.ErrorIs(t, send(t.Context()), api.ErrBlocked)
	}
}
