package sharing

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/cluster/store"
	"github.com/penstock-go/penstock/stat"
)

// roundScript drives the round of a window of 1 s in ten buckets. The store's clock is ten seconds ahead.
func roundScript(s *scenario) script {
	ring := store.Ring{Shape: stat.Shape{Interval: time.Second, Buckets: 10}}
	r := newRound(ring)
	var sent *store.Take
	units := func() store.Units { return store.Units{Bucket: s.num("bucket", 0), Units: s.units()} }
	list := func(what string, all []store.Units) string {
		var text strings.Builder
		for _, u := range all {
			fmt.Fprintf(&text, ", %s %d of bucket %d", what, u.Units, u.Bucket)
		}
		return text.String()
	}
	printed := ""
	account := func() string { // if changed
		var all []string
		for _, e := range r.account {
			var text strings.Builder
			fmt.Fprintf(&text, "bucket %d:", e.bucket)
			for _, part := range []struct {
				units int64
				what  string
			}{{e.counted, "counted"}, {e.charging, "on their way"}, {e.uncharged, "to charge"}} {
				if part.units > 0 {
					fmt.Fprintf(&text, " %d %s", part.units, part.what)
				}
			}
			all = append(all, text.String())
		}
		if text := strings.Join(all, ", "); text != printed {
			printed = text
			return text
		}
		return ""
	}
	reply := func(epoch int64) string {
		sent.Reply = store.TakeReply{Epoch: epoch}
		if r.forgets(sent) {
			return "the store forgets the key: the member does without it"
		}
		if r.replied(sent) {
			r.renew(epoch, func(at int64) int64 { return ring.Bucket(at + 10*int64(time.Second)) })
			return lines(fmt.Sprintf("epoch %d begins", r.epoch), account())
		}
		return account()
	}
	return script{
		"bucket": func() string {
			r.enter(edge{bucket: s.num("number", 0)})
			return account()
		},
		"spend":   func() string { r.spend(units(), s.now); return account() },
		"unspend": func() string { r.unspend(units()); return account() },
		"admit":   func() string { r.admit(units(), s.now); return account() },
		"back":    func() string { r.handBack(units(), s.at("by", 0)); return "" },
		"due":     func() string { return fmt.Sprint(r.due(s.now)) },
		"command": func() string {
			a := ask{need: s.num("need", 0), want: s.num("want", 0), ahead: s.num("ahead", 0)}
			t := r.command(a, s.has("leased"), s.has("probes"))
			if t == nil {
				return "nothing to send"
			}
			sent = t
			text := list("charges", t.Charges) + list("hands back", t.Backs)
			if n := max(t.Need, t.Want); n > 0 {
				text = fmt.Sprintf(", asks for %d", n) + text
			}
			return fmt.Sprintf("epoch %d%s", t.Epoch, text)
		},
		// reply replies to the latest command.
		"reply": func() string { return reply(s.num("epoch", r.epoch)) },
		// forget sends a command, to which a store replies that has just created the key again.
		"forget": func() string {
			sent = r.command(ask{need: 1}, true, false)
			return reply(r.epoch + 1)
		},
		"another": func() string { r = newRound(ring); return "" },
		"lose": func() string {
			r.failed(sent, true, 0)
			return cmp.Or(account(), "the account is as it was")
		},
		"reject": func() string {
			r.failed(sent, false, s.now+int64(50*time.Millisecond))
			return cmp.Or(account(), "the account is as it was")
		},
	}
}

// fallbackScript drives the fallback of a window of 1 s in ten buckets. The command that takes
// units is named after the rule's onFailure.
func fallbackScript(s *scenario) script {
	shape := stat.Shape{Interval: time.Second, Buckets: 10}
	var f fallback
	var admitted account
	var lots [2]*lot
	limit, members, leased, token := int64(0), int64(1), int64(0), int64(0)
	begin := func() {
		middle := func(n int64) int64 { return n / 2 }
		f.begin(s.now, shareOf(limit, members, shape.Interval), shape, admitted, lots, middle)
	}
	counts := func() string {
		interval := shape.Interval * time.Duration(f.share.intervals)
		return fmt.Sprintf("%d count, of %d in %v", f.local.Sum(s.now), f.share.units, interval)
	}
	take := func(how cluster.OnFailure) func() string {
		return func() string {
			n := s.units()
			if how == cluster.Local {
				begin()
			}
			f.used = true
			fits, afterClosing := f.fits(how, s.now, n, leased)
			closed := ""
			if afterClosing {
				closed = fmt.Sprintf("gives up %d leased units", leased)
				f.ended(lots[0], leased)
				leased = 0
			}
			if fits || afterClosing {
				token, fits = f.take(how, s.now, n)
			}
			if !fits {
				return lines(closed, "none")
			}
			f.granted(token, s.now/int64(shape.Width()), int64(shape.Buckets))
			if how == cluster.Local {
				return lines(closed, "ok", counts())
			}
			return "ok"
		}
	}
	return script{
		"limit":   func() string { limit = s.units(); return "" },
		"members": func() string { members = s.units(); return "" },
		// admitted and leased set the member's state when the store becomes unreachable.
		"admitted": func() string {
			admitted.of(0).counted, admitted.of(0).at = s.units(), s.now
			return ""
		},
		"leased": func() string {
			leased = s.units()
			lots[0] = &lot{number: 1, ends: s.at("until", 0), granted: leased}
			return ""
		},
		"spend": func() string { leased -= s.units(); return "" },
		"over": func() string {
			f.ended(lots[0], leased)
			leased = 0
			return counts()
		},
		"local":  take(cluster.Local),
		"open":   take(cluster.Open),
		"closed": take(cluster.Closed),
		"cancel": func() string {
			if _, ok := f.cancel(token, s.units()); ok {
				return counts()
			}
			return "they stay charged"
		},
		"holds": func() string { return fmt.Sprint(f.holds(s.now, token)) },
		"counts": func() string {
			begin()
			return counts()
		},
		"answer": func() string { f, admitted, lots = fallback{}, nil, [2]*lot{}; return "" },
	}
}
