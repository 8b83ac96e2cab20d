package engine

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/argument"
)

// note makes a call on one lane record the rejection.
func note(b *core.BlockError, lane uint32, now int64) (refusals int64, due bool) {
	inv := Invocation{engine: new(Engine), lane: lane}
	inv.now = now
	if !inv.NoteRefusal(b) {
		return 0, false
	}
	return refusalsOf(b).unlogged(), true
}

// Every rejection is reported exactly once, in one line or another.
func TestNoteConservesRefusals(t *testing.T) {
	record := new(Record)
	b := NewCounted(core.BlockError{}, nil, record, nil)
	const callers, each = 8, 2000
	var mu sync.Mutex
	told, lines := int64(0), 0
	var done sync.WaitGroup
	for c := range callers {
		done.Go(func() {
			for i := range each {
				if n, due := note(b, uint32(c), int64(i)*int64(10*time.Millisecond)); due {
					mu.Lock()
					told += n
					lines++
					mu.Unlock()
				}
			}
		})
	}
	done.Wait()
	assert.LessOrEqual(t, lines, 20, "20 s, a line each")
	assert.Equal(t, int64(callers*each), told+refusalsOf(b).unlogged())
	assert.Equal(t, int64(callers*each), record.Refused.Load())
	assert.Zero(t, refusalsOf(b).unlogged())
}

// The first rejection is reported immediately, even if the clock is before 1970.
func TestNoteIsDueAtFirst(t *testing.T) {
	for _, now := range []int64{0, 1, 1_700_000_000_000_000_000, -1, -int64(20 * 365 * 24 * time.Hour)} {
		b := NewCounted(core.BlockError{}, nil, nil, nil)
		n, due := note(b, 0, now)
		assert.True(t, due, "at %d", now)
		assert.Equal(t, int64(1), n)
		_, due = note(b, 0, now+int64(time.Second)-1)
		assert.False(t, due)
		n, due = note(b, 0, now+int64(time.Second))
		assert.True(t, due)
		assert.Equal(t, int64(2), n)
	}
}

// Rejections that are counted together are reported together.
func TestRefusalsCountedTogether(t *testing.T) {
	record := new(Record)
	rule := NewCounted(core.BlockError{Kind: core.KindHotspot, Rule: "r"}, nil, record, nil)
	says := *rule
	says.Value = argument.Of("ann")
	ann := NewCounted(says, nil, record, rule)
	_, due := note(ann, 0, 0)
	assert.True(t, due)
	_, due = note(rule, 0, 1)
	assert.False(t, due, "a line was written just now")
	assert.EqualValues(t, 2, record.Refused.Load())
	assert.EqualValues(t, 1, refusalsOf(rule).unlogged())
	assert.Zero(t, refusalsOf(ann).unlogged())
	other := NewCounted(says, nil, record, nil)
	_, due = note(other, 0, 2)
	assert.True(t, due, "it is reported by itself")
	assert.EqualValues(t, 3, record.Refused.Load(), "it still counts as the rule's")
}
