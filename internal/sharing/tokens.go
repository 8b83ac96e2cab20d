package sharing

import (
	"slices"
	"time"

	"github.com/penstock-go/penstock/cluster/store"
)

// tokens are the lease of a token bucket: runs of turns, a spacing apart, by time. A call may use a
// turn from slack before its time until it passes in the store. If the store has given none in the time
// before, the turns of a run may be earlier, but not before they are used: so turns that pass unused,
// and the hold of a bucket that was full, delay no call.
//
// Invariant: a turn is in one run, or a call has it, or it is lost. The time of a turn is the latest
// that it may have by the member's clock; it may have passed since its run's begin, by the latest
// time that the store's clock may show. The turns of a run may be moved to early, or to now.
//
// The bucket's mutex guards it.
type tokens struct {
	spacing, slack int64
	lag            int64 // the maximum staleness of the clock
	runs           []tokenRun
	blur           int64 // the longest time between a turn's earliest and its latest time, but for drift
	newest         int64 // time of the latest turn so far
	dropped        int64 // turns up to this time don't come back
	spans          map[int64][]tokenRun
	lastSpan       int64
}

// tokenRun is some turns in a row. At the time sent, none after begin had passed.
type tokenRun struct {
	next, left  int64
	early       int64
	begin, sent int64
}

// mostRuns bounds the runs of calls that return turns; the first are lost.
const mostRuns = 1024

// add adds the turns that a reply grants.
func (t *tokens) add(c *store.Tokens, sent, received int64) {
	wait := max(c.Reply.Wait, c.Hold)
	length := (c.Reply.Granted - 1) * t.spacing
	ahead := max(0, int64(wait)+length-t.slack) // until the last turn may be used
	begin := received + t.lag + (ahead+drift-2)/(drift-1)
	t.blur = max(t.blur, begin-sent)
	next := begin + int64(wait)
	t.newest = max(t.newest, next+length)
	early := sent // the bucket was full: the turns begin when they are used
	if c.Reply.Wait > 0 {
		early = begin + int64(c.Reply.Wait)
	}
	t.insert(tokenRun{next, c.Reply.Granted, early, begin, sent})
}

func (t *tokens) insert(r tokenRun) {
	i := len(t.runs)
	for i > 0 && t.runs[i-1].next > r.next {
		i--
	}
	t.runs = slices.Insert(t.runs, i, r)
	if len(t.runs) > mostRuns {
		t.runs = slices.Delete(t.runs, 0, 1)
	}
}

// at returns a run without the turns that may have passed by now, and with the time to which the next
// may be moved.
func (t *tokens) at(r tokenRun, now int64) tokenRun {
	earliest := r.begin + atMost(time.Duration(now+t.lag-r.sent))
	if r.next < earliest {
		passed := min(r.left, (earliest-r.next+t.spacing-1)/t.spacing)
		r.next += passed * t.spacing
		r.left -= passed
	}
	r.early = min(max(r.early, now), r.next)
	return r
}

// take takes the first n turns, for a call.
func (r *tokenRun) take(n, spacing int64) (taken tokenRun) {
	taken = tokenRun{next: r.early, left: n}
	r.next += n * spacing
	r.early += n * spacing
	r.left -= n
	return taken
}

// end returns the time of a run's last turn.
func (r *tokenRun) end(spacing int64) int64 { return r.next + (r.left-1)*spacing }

// left returns the number of turns that haven't passed.
func (t *tokens) left(now int64) (n int64) {
	for _, r := range t.runs {
		n += t.at(r, now).left
	}
	return n
}

// fitsAt returns the time from which a call of n units may use the first turns that are left at now;
// false if there are too few.
func (t *tokens) fitsAt(now, n int64) (at int64, ok bool) {
	for _, r := range t.runs {
		r = t.at(r, now)
		if use := min(n, r.left); use > 0 {
			taken := r.take(use, t.spacing)
			at = max(at, taken.end(t.spacing)-t.slack) // the times of runs are inexact, and may overlap
			n -= use
		}
		if n == 0 {
			return at, true
		}
	}
	return 0, false
}

// fits reports whether a call may use n turns now.
func (t *tokens) fits(now, n int64) bool {
	at, ok := t.fitsAt(now, n)
	return ok && at <= now
}

// take gives a call of n units the first turns, if it may use them now. The token is for giveBack.
func (t *tokens) take(now, n int64) (token int64, ok bool) {
	if !t.fits(now, n) {
		return 0, false
	}
	return t.remove(now, n), true
}

// drain takes up to n turns that nobody uses, and returns how many.
func (t *tokens) drain(now, n int64) (taken int64) {
	if taken = min(n, t.left(now)); taken > 0 {
		delete(t.spans, t.remove(now, taken))
	}
	return taken
}

// remove removes the first n turns that are left at now, and returns their token: the time of the
// last one, or a negative number if they are of several runs.
func (t *tokens) remove(now, n int64) (token int64) {
	var span []tokenRun // of several runs
	for {
		r := &t.runs[0]
		*r = t.at(*r, now)
		taken := r.take(min(n, r.left), t.spacing)
		if r.left == 0 {
			t.runs = slices.Delete(t.runs, 0, 1)
		}
		if n -= taken.left; n == 0 && span == nil {
			return taken.end(t.spacing)
		}
		if taken.left > 0 {
			span = append(span, taken)
		}
		if n == 0 {
			break
		}
	}
	if t.spans == nil {
		t.spans = map[int64][]tokenRun{}
	}
	if len(t.spans) >= mostRuns {
		clear(t.spans) // calls that give nothing back leave theirs
	}
	t.lastSpan--
	t.spans[t.lastSpan] = span
	return t.lastSpan
}

// giveBack takes back the last n turns of a token, unless they have passed, and returns the token of
// the others.
func (t *tokens) giveBack(now, token, n int64) (others int64) {
	if token >= 0 {
		others = token - n*t.spacing
		if others >= t.dropped {
			t.back(now, tokenRun{next: others + t.spacing, left: n})
		}
		return others
	}
	span, ok := t.spans[token]
	if !ok {
		return token
	}
	for n > 0 && len(span) > 0 {
		r := &span[len(span)-1]
		back := min(n, r.left)
		r.left -= back
		n -= back
		t.back(now, tokenRun{next: r.next + r.left*t.spacing, left: back})
		if r.left == 0 {
			span = span[:len(span)-1]
		}
	}
	if t.spans[token] = span; len(span) == 0 {
		delete(t.spans, token)
	}
	return token
}

// back takes back turns that no call has used. Their run is unknown: they count as ones of the run
// with the longest blur, and with a drift since long ago.
func (t *tokens) back(now int64, r tokenRun) {
	if end := r.next + r.left*t.spacing; end > now {
		r.early, r.sent = r.next, now
		r.begin = now + t.blur + t.lag + (end-now+2*t.slack+turnsAhead)/(drift-1)
		if t.at(r, now).left > 0 {
			t.insert(r)
		}
	}
}

// drop loses all turns, also the turns that calls would give back.
func (t *tokens) drop() {
	t.runs, t.spans, t.dropped, t.blur = nil, nil, t.newest, 0
}
