package quotalog

import (
	"crypto/sha256"
	"fmt"
	"math"

	"github.com/penstock-go/penstock/internal/shared"
)

// Book has the entries of a rule at a resource. Safe for concurrent use.
type Book struct {
	log  *Log
	name string

	charged int64        // to keys without a mark, in periods that began before log.crashed
	slack   shared.Int64 // units that a key without a mark may take; on the disk
	want    int64        // the slack to write; under mu of the log

	mu      shared.Mutex // guards the fields below
	closed  bool
	entries map[string]*Entry
	ends    int64 // no period ends earlier, of the entries that the latest forgetLocked found in one
	checked int   // number of entries left by it
}

// longest is the number of bytes from which names and keys are hashed, so that records are short.
const longest = 1024

// short returns a name that isn't long, and a hash of one that is.
func short(name string) string {
	if len(name) < longest {
		return name
	}
	return fmt.Sprintf("%s#%x", name[:longest/2], sha256.Sum256([]byte(name)))
}

// Entry returns the entry of a key, for a meter. [Entry.Leave] ends that.
func (b *Book) Entry(key string, now int64) *Entry {
	key = short(key)
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entries[key]
	if e == nil {
		if len(b.entries) >= 2*b.checked+64 {
			b.forgetLocked(now)
		}
		e = &Entry{book: b, key: key, period: never, closed: b.closed}
		b.entries[key] = e
	}
	e.mu.Lock()
	e.meters++ // under the lock of the book, too, so that the entry isn't forgotten
	e.mu.Unlock()
	return e
}

// Restored returns the units that a key was charged with when the log was opened, if their period is
// not over, and whether no meter counts for the key yet.
func (b *Book) Restored(key string, now int64) (units int64, free, ok bool) {
	b.mu.Lock()
	e := b.entries[short(key)]
	b.mu.Unlock()
	if e == nil || now >= e.until {
		return 0, false, false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.restored, e.meters == 0, true
}

// Full reports whether the book has that many entries or more, of periods that are not over.
func (b *Book) Full(now int64, most int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.entries) >= most && now >= b.ends {
		b.forgetLocked(now)
	}
	return len(b.entries) >= most
}

// forgetLocked forgets the entries whose period is over. Their meters get others; see [Entry.Current].
func (b *Book) forgetLocked(now int64) {
	b.ends = math.MaxInt64
	for key, e := range b.entries {
		e.mu.Lock()
		end := e.until
		if e.period != never {
			end = max(end, e.end)
		}
		switch {
		case e.period == never && e.until == 0: // it has yet to count
		case now < end:
			b.ends = min(b.ends, end)
		case !e.queued:
			e.forgotten = true
			delete(b.entries, key)
		}
		e.mu.Unlock()
	}
	b.checked = len(b.entries)
}

// In reports whether the entry, which may be nil, is in a book.
func (e *Entry) In(b *Book) bool { return e != nil && e.book == b }

// Current returns the entry that a meter continues with: another one if this one was forgotten.
func (e *Entry) Current(now int64) *Entry {
	e.mu.Lock()
	forgotten := e.forgotten
	e.mu.Unlock()
	if forgotten {
		return e.book.Entry(e.key, now)
	}
	return e
}

// all returns the entries.
func (b *Book) all() []*Entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make([]*Entry, 0, len(b.entries))
	for _, e := range b.entries {
		all = append(all, e)
	}
	return all
}
