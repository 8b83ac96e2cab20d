package sharing

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/cluster/store"
	"github.com/penstock-go/penstock/stat"
)

var update = flag.Bool("update", false, "write what the scenarios of testdata print")

// The files of testdata are transcripts of the parts of a limit, each alone: no store, no member, no goroutine. A command
// is a line, and what it prints is indented below. Time is in milliseconds: a command that begins with one moves the
// clock there. Random numbers are in the middle of their range.
func TestScenarios(t *testing.T) {
	parts := map[string]func(*scenario) script{
		"leases":   leasesScript,
		"demand":   demandScript,
		"round":    roundScript,
		"fallback": fallbackScript,
		"permits":  permitsScript,
		"turns":    turnsScript,
	}
	for name, part := range parts {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join("testdata", name+".txt")
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(text), part)
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, gots := strings.Split(string(text), "\n"), strings.Split(got, "\n")
			for i := range max(len(want), len(gots)) {
				if i >= len(want) || i >= len(gots) || want[i] != gots[i] {
					t.Fatalf("%s differs from line %d on; it should read\n%s", file, i+1, got)
				}
			}
		})
	}
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) != len(parts) {
		t.Fatalf("%d parts, and the files %v: %v", len(parts), files, err)
	}
}

// script is the commands of a part, by their names. What they return is printed; nothing is fine.
type script map[string]func() string

// scenario is a transcript that is being played: the time, and the arguments of the command.
type scenario struct {
	t    *testing.T
	now  int64
	line string
	args map[string]string
}

// play returns the text with what its commands print now.
func play(t *testing.T, text string, part func(*scenario) script) string {
	var out strings.Builder
	s := &scenario{t: t}
	commands := part(s)
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, "\n"); strings.HasPrefix(line, " ") {
			continue // printed by an earlier run
		}
		fmt.Fprintln(&out, line)
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		s.line, s.args = line, map[string]string{}
		if at, ok := strings.CutSuffix(words[0], "ms"); ok {
			s.now, words = s.milliseconds(at), words[1:]
		}
		command := commands[words[0]]
		if command == nil {
			t.Fatalf("%q: no such command", line)
		}
		for _, word := range words[1:] {
			if name, value, ok := strings.Cut(word, "="); ok {
				s.args[name] = value
			} else if _, err := strconv.Atoi(word); err == nil {
				s.args["units"] = word
			} else {
				s.args[word] = "1"
			}
		}
		for printed := range strings.Lines(command()) {
			fmt.Fprintf(&out, "      %s\n", strings.TrimRight(printed, "\n"))
		}
		for name := range s.args {
			t.Fatalf("%q: the command has no argument %s", line, name)
		}
	}
	return out.String()
}

// num returns an argument of the command, by its name; the number that has none is units.
func (s *scenario) num(name string, otherwise int64) int64 {
	text, ok := s.args[name]
	if !ok {
		return otherwise
	}
	delete(s.args, name)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		s.t.Fatalf("%q: %v", s.line, err)
	}
	return n
}

func (s *scenario) units() int64         { return s.num("units", 0) }
func (s *scenario) has(name string) bool { return s.num(name, 0) == 1 }

// at is an argument that is a time, in milliseconds.
func (s *scenario) at(name string, otherwise int64) int64 {
	text, ok := s.args[name]
	if !ok {
		return otherwise
	}
	delete(s.args, name)
	return s.milliseconds(text)
}

func (s *scenario) milliseconds(text string) int64 {
	ms, err := strconv.ParseFloat(text, 64)
	if err != nil {
		s.t.Fatalf("%q: %v", s.line, err)
	}
	return int64(ms * float64(time.Millisecond))
}

// lines joins what a command prints, without what is empty.
func lines(all ...string) string {
	var b strings.Builder
	for _, line := range all {
		if line != "" {
			fmt.Fprintln(&b, line)
		}
	}
	return b.String()
}

// span is a time as it is printed, and as a reply has it.
func span(at int64) time.Duration { return time.Duration(at).Truncate(time.Microsecond) }

// leasesScript drives the leases of a window with buckets of 100 ms.
func leasesScript(s *scenario) script {
	const width = 100 * time.Millisecond
	epoch := int64(1)
	l := newLeases(10)
	left := func() string { return fmt.Sprintf("%d left", l.lease.units()) }
	handsBack := func(o leftover) string {
		if o.lot == nil {
			return ""
		}
		return fmt.Sprintf("lot %d is over: %d spent, hands back %d of bucket %d", o.lot.number, o.spent(), o.unspent, o.lot.bucket)
	}
	return script{
		// grant is a reply of the store, received now: units of a bucket, while bucket current lasts for left.
		"grant": func() string {
			r := &store.TakeReply{Epoch: epoch, Bucket: s.num("bucket", 0), Granted: s.units(), Left: span(s.at("left", 0))}
			r.Current = s.num("current", r.Bucket)
			x := newLot(r, width, s.at("sent", s.now), s.now, 0)
			x.borrowed = s.has("borrowed")
			in, over := l.grant(x, s.now)
			return lines(handsBack(over), fmt.Sprintf("lot %d: %d units of bucket %d, from %v to %v", in.number, in.granted, in.bucket, span(in.starts), span(in.ends)))
		},
		"take": func() string {
			number, few, ok := l.lease.take(0, s.now, s.units())
			switch {
			case !ok:
				return "none, " + left()
			case few:
				return fmt.Sprintf("ok, of lot %d, few are left: %s", number, left())
			}
			return fmt.Sprintf("ok, of lot %d, %s", number, left())
		},
		"return": func() string {
			number, n := uint32(s.num("lot", 0)), s.units()
			if over := l.giveBack(number, n, epoch); over != nil {
				return fmt.Sprintf("lot %d is in no lease: hands back %d of bucket %d", number, n, over.bucket)
			}
			return fmt.Sprintf("%s, and %d of the next bucket", left(), l.nextLeft)
		},
		"holds": func() string { return fmt.Sprint(l.holds(uint32(s.num("lot", 0)), epoch, s.now)) },
		"spent": func() string { return fmt.Sprint(l.newlySpent()) },
		"roll": func() string {
			over, begun := l.roll(s.now)
			begins := ""
			if begun != nil {
				begins = fmt.Sprintf("lot %d begins with %s", begun.number, left())
			}
			return lines(handsBack(over[0]), handsBack(over[1]), begins)
		},
		"drop": func() string {
			return lines(handsBack(l.closeCurrent(s.now)), handsBack(l.closeNext()))
		},
		// renew is the store's loss of the key: what it knew is of another epoch.
		"renew": func() string { epoch++; return "" },
		"next":  func() string { return span(l.changesAt()).String() },
	}
}

// demandScript drives the demand of a member of a window of 1 s in ten buckets.
func demandScript(s *scenario) script {
	d := newDemand(store.Ring{Shape: stat.Shape{Interval: time.Second, Buckets: 10}})
	p := position{limit: 1000}
	middle := func(n int64) int64 { return n / 2 }
	var last ask
	print := func(a ask) string {
		last = a
		switch {
		case a.need|a.want == 0:
			return "asks for nothing"
		case a.ahead != 0:
			return fmt.Sprintf("asks for %d units of bucket %d", a.want, a.ahead)
		case a.borrow > 0:
			return fmt.Sprintf("asks for %d, or to borrow them within %v", a.need, a.borrow)
		case a.want <= a.need:
			return fmt.Sprintf("asks for %d", a.need)
		}
		return fmt.Sprintf("asks for %d, %d at least", a.want, a.need)
	}
	return script{
		"limit":   func() string { p.limit = s.units(); return "" },
		"members": func() string { d.active = s.units(); return "" },
		"bucket": func() string {
			ends := s.at("ends", 0)
			p.edge = edge{s.num("number", p.edge.bucket+1), ends - int64(time.Millisecond), ends + int64(time.Millisecond)}
			d.enter(s.now, p.edge, middle)
			return fmt.Sprintf("asks for the next lease at %v", span(d.nextAt))
		},
		"spent": func() string {
			d.count(s.now, s.units())
			return fmt.Sprintf("%d in a bucket", d.wanted.over(d.lasts()))
		},
		"miss": func() string { d.missed.Add(s.units()); return "" },
		// have says what the leases have.
		"have": func() string {
			p.nextLeft = s.num("next", 0)
			p.left, p.few, p.next = s.units(), s.has("few"), p.nextLeft > 0
			return ""
		},
		"low": func() string { d.runsLow(p, s.now); return fmt.Sprintf("%d short", d.short) },
		// look is what the window does at a time that it has planned.
		"look": func() string {
			if d.worthAsking(d.short, p, s.now) || d.wantsNext(p, s.now) || d.wantsMore(p, s.now) {
				return print(d.askAhead(p, 20*time.Millisecond, s.now))
			}
			return "asks for nothing"
		},
		"call": func() string {
			n := s.units()
			if p.covers(s.now, n) {
				return "the next lease has them in a moment"
			}
			return print(d.askFor(waiting{&Need{Units: n, MaxWait: span(s.at("borrow", 0))}, n}, p, s.now))
		},
		// reply is what the store grants of what was asked for last.
		"reply": func() string {
			t := &store.Take{Need: last.need, Want: last.want, Ahead: last.ahead}
			t.Reply = store.TakeReply{Granted: s.units(), Room: s.num("room", 0), Free: span(s.at("free", 0)), Current: p.edge.bucket}
			d.look(t)
			d.learn(t, p.limit, p.edge, s.now, middle)
			d.lastGrant = t.Reply.Granted
			if s.now >= d.room.until.Load() {
				return ""
			}
			return fmt.Sprintf("refuses more than %d until %v, asks again from %v on", d.room.units.Load(), span(d.room.until.Load()), span(d.pause))
		},
		"refuses": func() string { return fmt.Sprint(d.room.refuses(s.now, s.units(), 0)) },
		"by":      func() string { return span(d.by(p.limit, s.now)).String() },
	}
}

// roundScript drives the round of a window of 1 s in ten buckets. The store's clock is ten seconds ahead.
func roundScript(s *scenario) script {
	ring := store.Ring{Shape: stat.Shape{Interval: time.Second, Buckets: 10}}
	r := newRound(ring)
	var sent *store.Take
	units := func() store.Units { return store.Units{Bucket: s.num("bucket", 0), Units: s.units()} }
	list := func(what string, all []store.Units) string {
		text := ""
		for _, u := range all {
			text += fmt.Sprintf(", %s %d of bucket %d", what, u.Units, u.Bucket)
		}
		return text
	}
	account := func() string {
		var all []string
		for _, e := range r.account {
			text := fmt.Sprintf("bucket %d: %d counted", e.bucket, e.counted)
			if e.charging > 0 {
				text += fmt.Sprintf(", %d on their way", e.charging)
			}
			if e.uncharged > 0 {
				text += fmt.Sprintf(", %d to charge", e.uncharged)
			}
			all = append(all, text)
		}
		return strings.Join(all, "\n")
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
		// reply is that of the store to the command that was sent last.
		"reply": func() string { return reply(s.num("epoch", r.epoch)) },
		// forget is a command, and the reply of a store that has just made the key anew.
		"forget": func() string {
			sent = r.command(ask{need: 1}, true, false)
			return reply(r.epoch + 1)
		},
		"another": func() string { r = newRound(ring); return "" },
		"lose":    func() string { r.failed(sent, true, 0); return account() },
		"reject":  func() string { r.failed(sent, false, s.now+int64(50*time.Millisecond)); return account() },
	}
}

// fallbackScript drives the fallback of a window of 1 s in ten buckets. A command that takes units says how the rule decides.
func fallbackScript(s *scenario) script {
	shape := stat.Shape{Interval: time.Second, Buckets: 10}
	var f fallback
	var admitted account
	var lots [2]*lot
	limit, members, leased, token := int64(0), int64(1), int64(0), int64(0)
	begin := func() {
		f.begin(s.now, shareOf(limit, members, shape.Interval), shape, admitted, lots, func(n int64) int64 { return n / 2 })
	}
	counts := func() string {
		return fmt.Sprintf("%d count, of %d in %v", f.local.Sum(s.now), f.share.units, shape.Interval*time.Duration(f.share.intervals))
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
				closed = fmt.Sprintf("gives up %d that are leased", leased)
				f.ended(lots[0], leased)
				leased = 0
			}
			if fits || afterClosing {
				token, fits = f.take(how, s.now, n)
			}
			switch {
			case !fits:
				return lines(closed, "none")
			case how == cluster.Local:
				return lines(closed, "ok", counts())
			}
			return "ok"
		}
	}
	return script{
		"limit":   func() string { limit = s.units(); return "" },
		"members": func() string { members = s.units(); return "" },
		// admitted and leased are what the member has as the store goes away.
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
			if f.cancel(token, s.units()) {
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

// permitsScript drives the parts of a semaphore whose permits expire after two seconds.
func permitsScript(s *scenario) script {
	const expiry = 2 * time.Second
	var p permits
	d, r := newPermitDemand(), permitRound{active: 1}
	limit, sent := int64(0), &store.Permits{}
	use := func() string { return fmt.Sprintf("%d in use, of %d", p.inUse.InUse(), p.goodAt(s.now)) }
	free := func() int64 { return r.room(limit) + max(0, p.good.Load()-p.inUse.InUse()) }
	keep := func() { d.keep(s.now, max(p.good.Load(), r.held) > p.inUse.InUse()) }
	return script{
		"limit": func() string { limit = s.units(); return "" },
		"acquire": func() string {
			n := s.units()
			switch {
			case p.take(0, s.now, n):
				return use()
			case d.refuses(s.now, n, free(), limit):
				return "refused, " + use()
			}
			d.short += n
			return "the store has to be asked"
		},
		"release": func() string {
			p.inUse.Release(0, s.units())
			keep()
			if d.idleAt == never {
				return use()
			}
			return fmt.Sprintf("%s, what is idle goes back at %v", use(), span(d.idleAt))
		},
		"command": func() string {
			used := p.inUse.InUse()
			if s.now >= d.idleAt {
				used, d.idleAt = p.giveUp(), never
			}
			sent = &store.Permits{Limit: limit, Claim: used, Expiry: expiry}
			sent.Need, sent.Want = d.ask(used, p.good.Load(), waiting{}, limit, r.active)
			keep()
			return fmt.Sprintf("has %d in use, needs %d, wants %d", used, sent.Need, sent.Want)
		},
		// reply is the store's: what it counts for this member, and for all.
		"reply": func() string {
			sent.Reply = store.PermitsReply{Held: s.num("held", 0), Total: s.num("total", 0), Active: s.num("members", 1)}
			p.good.Store(r.replied(sent, expiry, s.now))
			p.expires.Store(s.now + shorter(expiry))
			d.fullUntil = 0
			if p.good.Load() < sent.Need {
				d.full(s.now, func(n int64) int64 { return n / 2 })
			}
			keep()
			return fmt.Sprintf("%s, %d free, renews at %v", use(), free(), span(r.renewAt))
		},
		"away": func() string {
			n := s.units()
			most := fallbackPermits(cluster.Local, limit, r.active)
			if !p.takeWithin(n, most) {
				return fmt.Sprintf("refused: %d in use, of %d", p.inUse.InUse(), most)
			}
			return fmt.Sprintf("ok: %d in use, of %d", p.inUse.InUse(), most)
		},
	}
}

// turnsScript drives the parts of a throttle of 500 turns a second.
func turnsScript(s *scenario) script {
	spacing := int64(2 * time.Millisecond)
	var t turns
	var d turnDemand
	r, f := turnRound{last: longAgo}, turnFallback{last: longAgo}
	var sent *store.Turn
	left := func() string { return fmt.Sprintf("%d left", t.left) }
	return script{
		// take is a call of some units, which waits no longer than that for its turn.
		"take": func() string {
			n, within := s.units(), span(s.at("within", 0))
			wait, ok := t.take(s.now, n, within, true)
			switch {
			case ok:
				d.wanted.units += n
				return fmt.Sprintf("its turn is in %v, %s", wait, left())
			case r.next(n, spacing)-s.now > int64(within):
				return fmt.Sprintf("refused: its turn is at %v at the earliest", span(r.next(n, spacing)))
			}
			d.short += n
			return "the store has to be asked, " + left()
		},
		"command": func() string {
			sent = &store.Turn{Spacing: time.Duration(spacing)}
			var calls waiting
			if n := s.num("units", 0); n > 0 {
				calls = waiting{&Need{Units: n, MaxWait: span(s.at("within", 0))}, n}
			}
			sent.Need, sent.Want, sent.Within = d.ask(calls, spacing, s.now)
			return fmt.Sprintf("asks for %d units, the first %d within %v", sent.Want, sent.Need, sent.Within)
		},
		"reply": func() string {
			sent.Reply = store.TurnReply{Granted: s.units(), Wait: span(s.at("wait", 0))}
			r.replied(sent, s.at("sent", s.now))
			if sent.Reply.Granted > 0 {
				t = newTurns(sent, s.now, 0)
			}
			return fmt.Sprintf("%s, the store's last turn is at %v", left(), span(r.last))
		},
		"first": func() string { return fmt.Sprintf("its turn is in %v, %s", t.takeFirst(s.now), left()) },
		// away is a call while the store is, of one member of two.
		"away": func() string {
			n, within := s.units(), span(s.at("within", 0))
			wait, ok := f.take(cluster.Local, s.now, f.next(r.last, n, spacing, 2), within, true)
			if !ok {
				return "refused"
			}
			return fmt.Sprintf("its turn is in %v", wait)
		},
	}
}
