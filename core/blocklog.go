package core

import (
	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/internal/shown"
)

// What the log gets of names, which may come from outside: a name has so many columns, and
// the lines about refusals have about so many bytes a second.
const (
	loggedWidth  = 256
	loggedSecond = 64 << 10
	loggedFrame  = 100 // bytes of a line besides names
)

// logged is a name as the log gets it. It leaves nothing to be escaped by handlers: they
// differ in what they do, and none looks beyond ASCII.
func logged(name string) string { return shown.Name(name, loggedWidth) }

// blockLog bounds the bytes of the block log, whose lines are as many as there are names:
// a caller can think of new ones all the time. Refusals that have no room in a second are
// told together, by the first line of a later one. It is safe for concurrent use. The
// handler is never called under its lock.
type blockLog struct {
	mu       shared.Mutex
	begun    bool
	end      int64 // of the present second
	left     int   // bytes
	unlisted int64 // refusals that were told by no line yet
}

// take asks for room for a line about so many refusals. It returns the refusals of earlier
// seconds that are to be told first, together.
func (l *blockLog) take(now int64, size int, refusals int64) (ok bool, earlier int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.begun || now >= l.end {
		l.begun, l.end, l.left = true, now+logPause, loggedSecond
		earlier, l.unlisted = l.unlisted, 0
	}
	if l.left <= 0 {
		l.unlisted += refusals
		return false, earlier
	}
	l.left -= size
	return true, earlier
}

// last begins a last second, as the log is flushed, and returns a time in it.
func (l *blockLog) last() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end
}

// rest is what no line has told.
func (l *blockLog) rest() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	rest := l.unlisted
	l.unlisted = 0
	return rest
}

// LogBlocked writes a line of the block log, unless there were so many in this second that
// the refusals are told together with others later.
func (e *Engine) LogBlocked(b *BlockError, refusals, now int64) {
	resource, rule := logged(b.Resource), logged(b.Rule)
	ok, earlier := e.blockLog.take(now, loggedFrame+len(resource)+len(rule), refusals)
	e.logUnlisted(earlier)
	if ok {
		e.Logger().Warn("penstock: blocked", "kind", b.Kind.String(), "resource", resource, "rule", rule, "count", refusals)
	}
}

func (e *Engine) logUnlisted(refusals int64) {
	if refusals > 0 {
		e.Logger().Warn("penstock: blocked, not listed: too many rules and resources at once", "count", refusals)
	}
}

// flushBlockLog tells what the block log has not told yet.
func (e *Engine) flushBlockLog() {
	now := e.blockLog.last()
	flush := func(b *BlockError) {
		if n := b.unlogged(); n > 0 {
			e.LogBlocked(b, n, now)
		}
	}
	for _, family := range e.rules.Load().families {
		if family != nil {
			family.EachError(flush)
		}
	}
	e.EachResource(func(r *Resource) { r.eachCustom(flush) })
	e.logUnlisted(e.blockLog.rest())
}
