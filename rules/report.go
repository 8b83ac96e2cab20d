package rules

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
)

// Reload is one outcome of a watched source: new rules are in force, or Err is the reason why the last
// good ones stay.
type Reload struct {
	Time   time.Time
	Source string // its name: the path of a file
	Hash   string // the first 12 hex digits of the content's SHA-256; "" if it couldn't be read
	Number uint64 // of the revision in force; see [Revision]
	Change Change // from this source's previous rules; none on error

	Revision string    // the source's name of the content; "" for a file, or if it couldn't be read
	Cached   time.Time // when the rules were written to the cache that they are from; otherwise zero

	// Left reports that the file was removed from its directory, and its rules are no longer in force.
	Left bool
	// Overrides lists the rules of this source that other sources replace, and the rules of others
	// that it replaces; see [Loader.AllowOverrides].
	Overrides []Override
	// Warnings are about Sentinel rules; see [ParseWith]. They are logged, too.
	Warnings []Warning
	Err      error // of reading, of parsing, of combining with the other sources, or of applying
}

// Status is the state of a source, or of all of them together.
type Status struct {
	Source      string    // its name; of all together the names, with commas
	Watching    bool      // it has not ended; of all, some have not
	OK          bool      // the last read was loaded; of all, every one was
	Polling     bool      // the system doesn't report changes; files are read every few seconds
	Hash        string    // of the content in force; of all, the revision's
	Revision    string    // the source's name of the content; "" for a file, and for all
	Cached      time.Time // when that was written to the cache that it is from; zero if it is not, and for all
	Confirmed   time.Time // when the source was last seen to have it; of all, the earliest
	Rules       int       // in force
	LastSuccess time.Time // zero if there was none
	LastFailure time.Time // zero if there was none
	LastError   error     // of LastFailure; stays after a later success
	Successes   uint64    // loads, including the first
	Failures    uint64
	Overrides   []Override // see [Reload]

	// Of all together; zero in the Status of one source.
	Number  uint64   // of the revision in force
	Sources []Status // each one, in their order
}

// Status returns the state of all sources together and, in Sources, of each: sources that are
// declared and whose first load succeeded, and sources that have ended and whose rules are still in
// force.
func (l *Loader) Status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := Status{OK: true, Number: l.number, Rules: l.set.Len(), Overrides: slices.Clone(l.over)}
	if n := len(l.history); n > 0 {
		all.Hash = l.history[n-1].Hash
	}
	members := slices.Clone(l.members)
	slices.SortStableFunc(members, func(a, b *member) int { return a.number - b.number })
	var names []string
	for _, m := range members {
		if !m.begun {
			continue
		}
		for _, p := range m.pieces {
			if m.names == nil && p.good == nil { // code without rules
				continue
			}
			s := p.status
			s.Watching, s.Polling = m.watched && !m.gone(), m.polling
			s.Overrides = slices.Clone(s.Overrides)
			names = append(names, s.Source)
			all.Sources = append(all.Sources, s)
			all.Watching = all.Watching || s.Watching
			all.OK = all.OK && s.OK
			all.Polling = all.Polling || s.Polling
			all.Successes += s.Successes
			all.Failures += s.Failures
			if !s.Confirmed.IsZero() && (all.Confirmed.IsZero() || s.Confirmed.Before(all.Confirmed)) {
				all.Confirmed = s.Confirmed
			}
			if s.LastSuccess.After(all.LastSuccess) {
				all.LastSuccess = s.LastSuccess
			}
			if s.LastFailure.After(all.LastFailure) {
				all.LastFailure, all.LastError = s.LastFailure, s.LastError
			}
		}
	}
	if len(all.Sources) == 0 {
		return Status{}
	}
	all.Source = strings.Join(names, ", ")
	return all
}

// report is an outcome to be reported.
type report struct {
	member *member
	first  bool // success of the source
	rules  int  // that it has
	parsed Parsed
	Reload
}

// tell reports outcomes to the log and the listeners, unless their source has ended in the meantime.
// Both may panic, which is logged if possible.
func (l *Loader) tell(reports []report) {
	l.mu.Lock()
	if l.closed || len(reports) == 0 {
		l.mu.Unlock()
		return
	}
	l.running.Add(1)
	inspector := l.inspector
	l.mu.Unlock()
	defer l.running.Done()
	for _, r := range reports {
		if r.member.names == nil || r.member.gone() { // code knows what it loads
			continue
		}
		_ = survive(func() { r.log(l.log) }) // errors of sources have methods, too
		if inspector != nil && r.Err == nil && !r.Left {
			l.call("OnLoaded", r.Source, func() { inspector(r.parsed) })
		}
		if r.member.listener != nil {
			l.call("OnReload", r.Source, func() { r.member.listener(r.Reload) })
		}
	}
}

// call calls a user function. If that panics, the panic is logged if possible.
func (l *Loader) call(name, source string, f func()) {
	if p := survive(f); p != nil {
		l.log.Error("penstock: watching rules: "+name+" panicked", "source", source, "panic", fmt.Sprint(p))
	}
}

func (r report) log(log *slog.Logger) {
	if r.Err != nil {
		log.Error("penstock: rules not loaded, keeping the last good ones", "source", r.Source, "error", r.Err)
		return
	}
	about := []any{"source", r.Source, "hash", r.Hash, "revision", r.Number, "rules", r.rules, "change", r.Change.String()}
	if !r.first && !r.Change.Empty() {
		about = append(about, "what", r.Change.logText())
	}
	if len(r.Overrides) > 0 {
		about = append(about, "overrides", overridesText(r.Overrides))
	}
	text := "penstock: rules loaded"
	if r.Left {
		text = "penstock: rule file removed from its directory, its rules are no longer in force"
	}
	if r.Cached.IsZero() {
		log.Info(text, about...)
	} else {
		about = append(about, "age", r.Time.Sub(r.Cached).Round(time.Second))
		log.Warn("penstock: source unreachable, using the rules in its cache", about...)
	}
	Parsed{Warnings: r.Warnings}.Warn(log)
}

// overridesText returns the overrides in one line, up to the limit for a log line.
func overridesText(all []Override) string {
	var texts []string
	for _, o := range all[:min(len(all), maxLogged)] {
		texts = append(texts, o.String())
	}
	if more := len(all) - maxLogged; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, "; ")
}

// survive runs f and returns the value of its panic, if any.
func survive(f func()) (reason any) {
	defer func() { reason = recover() }()
	f()
	return nil
}
