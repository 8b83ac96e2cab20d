package engine

import (
	"context"
	"log/slog"
	"time"

	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/internal/shown"
)

// LogTopic is a subject that the log reports in at most one line per second, such as the rejections
// by a rule at a resource, or the changes of a breaker. The first event is logged immediately;
// events in the second after a line are logged together, when the next one happens or by a timer of
// the engine, within two seconds of that line. Its methods are safe for concurrent use.
type LogTopic interface {
	// LogPace returns the time of the next line; always the same pointer.
	LogPace() *LogPace
	// Unreported reports whether there are events that no line has reported.
	Unreported() bool
	// LogLine returns the line about those events, which count as reported now. A Count of 0 means
	// no line.
	LogLine() LogLine
}

// LogLine is a line of the log. Strings among Args are escaped, and cut if they are long.
type LogLine struct {
	Level   slog.Level
	Message string
	Args    []any // as in [slog.Logger.Log]
	Count   int64 // number of events
}

// LogPace has the time of the next line about a [LogTopic]. The zero value means now. It is safe
// for concurrent use.
//
// # No event stays unreported
//
// A topic is on the list of the timer while next isn't 0, or its line is being written. A caller
// first counts an event as unreported and then reads next. The timer first sets next to 0 and then
// checks for unreported events. So either the timer finds the new events, or the caller finds 0 and
// writes the line.
type LogPace struct {
	next   shared.Int64 // time from which a line is due; 0 means always
	listed bool         // under the mu of lineLog, as is fresh
	fresh  bool         // since the last ring of the timer
}

// due reports whether a line is due, which the caller must then write.
func (p *LogPace) due(now int64) bool {
	next := p.next.Load()
	return (next == 0 || now >= next) && p.next.CompareAndSwap(next, now+logPause)
}

// Bounds on logged names, which may come from outside: the columns of a name, and the approximate
// bytes per second of all lines of one kind.
const (
	loggedWidth  = 256
	loggedSecond = 64 << 10
	loggedFrame  = 100 // bytes of a line apart from its strings
)

// logged returns a name as it is logged. It leaves nothing for handlers to escape: their behaviors
// differ, and none looks beyond ASCII.
func logged(name string) string { return shown.Name(name, loggedWidth) }

// lineLog writes the lines of one kind of topics. It bounds their bytes, since there are as many
// topics as names, and a caller can keep inventing names. Events that don't fit in a second are
// reported as one number, in a later second. It is safe for concurrent use. The handler is never
// called under its lock.
type lineLog struct {
	engine *Engine
	beyond string // message for events that don't fit

	mu       shared.Mutex
	begun    bool
	end      int64 // of the current second
	left     int   // bytes
	unlisted int64 // events that didn't fit, not reported yet

	topics []LogTopic // topics with recent lines
	stop   func()     // the timer; nil while none runs
	closed bool       // no timer runs from now on
}

// Log writes a line about a topic if one is due: at most one per second, and about 64 KiB per
// second for all topics. Other events are reported together with later ones, or by a timer.
func (e *Engine) Log(t LogTopic, now int64) {
	if t.LogPace().due(now) {
		e.changeLog.report(t, now)
	}
}

// report writes the line about a topic that is due.
func (l *lineLog) report(t LogTopic, now int64) {
	line := t.LogLine()
	size := loggedFrame
	for i, arg := range line.Args {
		if text, ok := arg.(string); ok && i%2 == 1 {
			text = logged(text)
			line.Args[i], size = text, size+len(text)
		}
	}
	ok, earlier := l.take(t, now, size, line.Count)
	l.reportUnlisted(earlier)
	if ok {
		l.engine.write(line)
	}
}

func (e *Engine) write(line LogLine) {
	e.Logger().Log(context.Background(), line.Level, line.Message, line.Args...)
}

// takeUnlisted returns the number of unreported events without room, and counts them as reported.
func (l *lineLog) takeUnlisted() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	unlisted := l.unlisted
	l.unlisted = 0
	return unlisted
}

func (l *lineLog) reportUnlisted(count int64) {
	if count > 0 {
		l.engine.write(LogLine{Level: slog.LevelWarn, Message: l.beyond, Args: []any{"count", count}})
	}
}

// take lists the topic, and asks for room for a line about count events. It returns the number of
// events of earlier seconds that must be reported first.
func (l *lineLog) take(t LogTopic, now int64, size int, count int64) (ok bool, earlier int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listLocked(t)
	if count == 0 {
		return false, 0
	}
	if !l.begun || now >= l.end {
		l.begun, l.end, l.left = true, now+logPause, loggedSecond
		earlier, l.unlisted = l.unlisted, 0
	}
	if l.left <= 0 {
		l.unlisted += count
		return false, earlier
	}
	l.left -= size
	return true, earlier
}

// listLocked makes the timer look at the topic. The caller holds mu.
func (l *lineLog) listLocked(t LogTopic) {
	if l.closed {
		return
	}
	p := t.LogPace()
	p.fresh = true
	if !p.listed {
		p.listed = true
		l.topics = append(l.topics, t)
	}
	if l.stop == nil {
		l.stop = l.engine.Every(time.Duration(logPause), l.ring)
	}
}

// ring logs the remaining events of the topics whose last line was written a second ago or, if the
// clock stands still, as a test's may, two rings ago.
func (l *lineLog) ring(now int64) {
	l.reportUnlisted(l.takeUnlisted())
	l.mu.Lock()
	rest := len(l.topics)
	l.mu.Unlock()
	for range rest {
		t, next := l.next(now)
		if t == nil {
			continue
		}
		// If next has changed by now, a line is about to be written, which lists the topic again.
		if p := t.LogPace(); p.next.CompareAndSwap(next, 0) && t.Unreported() && p.due(now) {
			l.report(t, now)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.topics) == 0 && l.stop != nil {
		l.stop()
		l.stop = nil
	}
}

// next takes the first topic off the list, and returns the time at which a line about it would have
// been due. It returns nil, and puts the topic at the end, if its last line is too recent for
// another.
func (l *lineLog) next(now int64) (t LogTopic, due int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.topics) == 0 { // flushed in the meantime
		return nil, 0
	}
	t = l.topics[0]
	l.topics = l.topics[1:]
	p := t.LogPace()
	due = p.next.Load()
	if p.fresh && now < due {
		p.fresh = false
		l.topics = append(l.topics, t)
		return nil, 0
	}
	p.listed = false
	return t, due
}

// flush logs the remaining events, with the full budget of a new second; no timer runs afterwards.
// more calls its argument with topics that may not be listed because they changed after an earlier
// flush.
func (l *lineLog) flush(more func(func(LogTopic))) {
	l.mu.Lock()
	topics, now := l.topics, l.end
	l.topics, l.closed = nil, true
	l.mu.Unlock()
	report := func(t LogTopic) {
		if t.Unreported() {
			l.report(t, now)
		}
	}
	for _, t := range topics {
		report(t)
	}
	more(report)
	l.reportUnlisted(l.takeUnlisted())
}
