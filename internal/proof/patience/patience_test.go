package patience

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/internal/proof/books"
)

func TestMain(m *testing.M) { books.Main(m) }

// limited is a test with its own deadline.
type limited struct {
	testing.TB
	end  time.Time
	none bool
}

func (l limited) Deadline() (time.Time, bool) { return l.end, !l.none }

func TestOf(t *testing.T) {
	left := Of(limited{TB: t, end: time.Now().Add(most)})
	assert.Positive(t, left)
	assert.LessOrEqual(t, left, most-report)
	assert.Equal(t, most, Of(limited{TB: t, end: time.Now().Add(100 * time.Hour)}))
	assert.Zero(t, Of(limited{TB: t, end: time.Now().Add(report / 2)}), "time to say why")
	assert.Equal(t, most, Of(limited{TB: t, none: true}))
}

func TestOfInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { assert.Equal(t, most, Of(t)) })
}

func TestUntil(t *testing.T) {
	asked := 0
	Until(t, "the third answer", func() bool { asked++; return asked == 3 })
	assert.Equal(t, 3, asked)
}
