package replay

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/stat"
)

// tally sums up the events on a node in some span of time.
type tally struct {
	stat.Counts
	minRT time.Duration // if any call completed
}

// events calls f with each event on a node until now, and its time.
func (b *book) events(ref NodeRef, now int64, f func(at int64, what stat.Counts)) {
	for _, c := range b.calls {
		if !b.on(ref, c) {
			continue
		}
		if c.blocked {
			f(c.released, stat.Counts{Block: c.units})
			continue
		}
		if c.released <= now {
			pass := stat.Counts{Pass: c.units, Entered: 1}
			if c.borrowed {
				pass.Occupied = c.units
			}
			f(c.released, pass)
		}
		if c.exited {
			done := stat.Counts{Complete: c.units, Exited: 1, RT: time.Duration(c.ended - c.asked)}
			if c.failed {
				done.Exception = c.units
			}
			f(c.ended, done)
		}
	}
}

func (t *tally) add(what stat.Counts) {
	if what.Exited > 0 && (t.Exited == 0 || what.RT < t.minRT) {
		t.minRT = what.RT
	}
	t.Add(&what)
}

// second returns the window that a node must show at now: in all, and by its buckets.
func (b *book) second(ref NodeRef, now int64) (all tally, best int64) {
	first := floor(now, b.width) + b.width - b.interval
	buckets := make([]int64, b.interval/b.width)
	b.events(ref, now, func(at int64, what stat.Counts) {
		if at >= first {
			all.add(what)
			i := (at - first) / b.width
			buckets[i] += what.Complete
			best = max(best, buckets[i])
		}
	})
	return all, best
}

// minute sums up the events of each second until now. Its keys are the starts.
func (b *book) minute(ref NodeRef, now int64) map[int64]*tally {
	seconds := make(map[int64]*tally)
	oldest := floor(now, int64(time.Second)) - 59*int64(time.Second)
	b.events(ref, now, func(at int64, what stat.Counts) {
		start := floor(at, int64(time.Second))
		if start < oldest {
			return
		}
		if seconds[start] == nil {
			seconds[start] = new(tally)
		}
		seconds[start].add(what)
	})
	return seconds
}

// snapshot returns the figures that a node must show at now, without waiting calls, or nil if there
// is no such node.
func (b *book) snapshot(ref NodeRef, now int64) figures {
	if !b.exists(ref) {
		return nil
	}
	all, best := b.second(ref, now)
	r := all.Per(time.Duration(b.interval))
	calls, _ := b.inFlight(ref, now)
	f := figures{
		"passQps": r.Pass, "blockQps": r.Block, "totalQps": r.Pass + r.Block,
		"successQps": r.Complete, "exceptionQps": r.Exception, "occupiedPassQps": r.Occupied,
		"maxSuccessQps": float64(best) / time.Duration(b.width).Seconds(),
		"avgRt":         ms(all.AvgRT()), "minRt": math.NaN(), "curThreadNum": float64(calls),
		"previousPassQps": 0, "previousBlockQps": 0,
	}
	if all.Exited > 0 {
		f["minRt"] = ms(all.minRT)
	}
	var minute stat.Counts
	for start, second := range b.minute(ref, now) {
		minute.Add(&second.Counts)
		if start == floor(now, int64(time.Second))-int64(time.Second) {
			f["previousPassQps"], f["previousBlockQps"] = float64(second.Pass), float64(second.Block)
		}
	}
	totals(f, &minute)
	f["totalRequest"] = float64(minute.Total())
	return f
}

// history returns the seconds of the last minute that a node must show.
func (b *book) history(ref NodeRef, now, epoch int64) []figures {
	if !b.exists(ref) {
		return nil
	}
	seconds := []figures{}
	minute := b.minute(ref, now)
	newest := floor(now, int64(time.Second))
	for start := newest - 59*int64(time.Second); start <= newest; start += int64(time.Second) {
		if t := minute[start]; t != nil {
			seconds = append(seconds, secondOf(start-epoch, &t.Counts))
		}
	}
	return seconds
}
