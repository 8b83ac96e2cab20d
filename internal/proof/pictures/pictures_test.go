package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/proof/books"
)

func TestMain(m *testing.M) { books.Main(m) }

// The pictures match the engine's current behavior, twice, and a page shows each.
func TestPicturesAreCurrent(t *testing.T) {
	var pages strings.Builder
	for _, name := range []string{"rules/flow", "rules/breaker", "rules/hotspot", "rules/upstream", "fairness", "criticality"} {
		text, err := os.ReadFile("../../../docs/" + name + ".md")
		require.NoError(t, err)
		pages.Write(text)
	}
	for _, p := range pictures {
		drawn, err := p.draw()
		require.NoError(t, err, p.name)
		again, err := p.draw()
		require.NoError(t, err, p.name)
		assert.Equal(t, drawn, again, p.name)
		shown, err := os.ReadFile("../../../docs/rules/" + p.name)
		require.NoError(t, err)
		assert.Equal(t, drawn, string(shown), "%s: make pictures", p.name)
		assert.Regexp(t, `\]\((rules/)?`+regexp.QuoteMeta(p.name)+`\)`, pages.String())

		for d := xml.NewDecoder(strings.NewReader(drawn)); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if !assert.NoError(t, err, p.name) {
				break
			}
		}
	}
}

// Theory and measurement in the picture agree, up to a shift of a second.
func TestTheoryOfWarmUp(t *testing.T) {
	measured := []float64{33, 34, 36, 38, 41, 44, 47, 52, 58, 68, 83, 100} // as docs/rules/flow.md shows
	for second, passed := range measured {
		from, to := limitAt(float64(second)-1, 100, 100), limitAt(float64(second)+1, 100, 100)
		assert.GreaterOrEqual(t, passed+1, from, second)
		assert.LessOrEqual(t, passed-1, to, second)
	}
	assert.InDelta(t, cold, limitAt(0, 100, 100), 1e-9)
	assert.Equal(t, warm, limitAt(period, 100, 100))
}
