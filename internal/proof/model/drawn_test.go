package model

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/penstock-go/penstock/internal/proof/books"
	"github.com/penstock-go/penstock/internal/proof/chance"
	"github.com/penstock-go/penstock/internal/proof/figure"
)

func TestMain(m *testing.M) { books.Main(m) }

var history = flag.Int("history", -1, "draw this history alone")

// known bug 18, 21, 22, 53, 54, 72, 125: the engine agrees with the model on every call, wait and
// count, regardless of what happens in between.
func TestDrawn(t *testing.T) {
	draw(t, "steps that differ from the model", figure.Size(60, 300, 10_000, 200_000), false)
}

// known bug 23, 24, 25, 26: the same holds with a clock that is set back now and then. Nothing
// stalls because of that, and nothing counts twice.
func TestDrawnOnAClockThatIsSet(t *testing.T) {
	draw(t, "steps that differ from the model on a clock that is set back", figure.Size(20, 100, 3000, 50_000), true)
}

func draw(t *testing.T, name string, histories int, settable bool) {
	t.Logf("-seed=%d", *chance.Seed)
	steps := int64(0)
	for i := range histories {
		if *history >= 0 && i != *history {
			continue
		}
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			m := newMachine(t, rand.New(rand.NewPCG(*chance.Seed, uint64(i))), settable)
			defer m.abandon()
			steps += m.play()
		})
		if t.Failed() {
			return
		}
	}
	figure.Report(t, figure.Figure{Name: name, N: steps, Seed: *chance.Seed})
}

// play makes the steps of a history.
func (m *machine) play() (steps int64) {
	m.load(m.set())
	m.agree()
	for range 20 + m.IntN(180) {
		steps++
		switch n := m.IntN(100); {
		case n < 45:
			m.enter()
		case n < 62:
			m.exit()
		case n < 70:
			m.cancel()
		case n < 88:
			m.advance()
		case n < 93:
			m.reload()
		case n < 95:
			m.stumble()
		case n < 97:
			m.busy()
		case n < 99 && m.settable:
			m.setBack()
		default:
			m.again()
		}
		m.agree()
	}
	for range 4 {
		if m.reckons() {
			m.rhythm()
		}
	}
	m.finish()
	return steps
}
