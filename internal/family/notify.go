package family

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/shared"
)

// MaxNotify is the number of shares of a limit that a rule reports.
const MaxNotify = 4

// aShare matches a share in the field notify; the schema has the same expression.
var aShare = regexp.MustCompile(`^([1-9][0-9]?|100)%$`)

// CheckNotify returns an error for the first share that can't be reported.
func CheckNotify(shares []string) error {
	if len(shares) > MaxNotify {
		return spec.BadField("notify", "has %d shares: use at most %d", len(shares), MaxNotify)
	}
	for i, text := range shares {
		if !aShare.MatchString(text) {
			return spec.BadField("notify", `has %.20q: use a whole percentage of the limit from "1%%" to "100%%"`, text)
		}
		if slices.Index(shares, text) < i {
			return spec.BadField("notify", "has %q twice: remove one", text)
		}
	}
	return nil
}

// Notifier reports the shares in the field notify of a rule at a resource, or is nil if it has none.
type Notifier struct {
	engine   *engine.Engine
	record   *engine.Record
	about    core.Notice // without the details of a call
	percents []int64
	Interval time.Duration

	pace     engine.LogPace
	unlogged shared.Int64
	latest   shared.Pointer[core.Notice]
}

// NewNotifier returns the notifier of a rule with these checked shares, or nil.
func NewNotifier(e *engine.Engine, record *engine.Record, kind core.Kind, rule, resource string, shares []string, interval time.Duration) *Notifier {
	if len(shares) == 0 {
		return nil
	}
	n := &Notifier{engine: e, record: record, about: core.Notice{Kind: kind, Rule: rule, Resource: resource}, Interval: interval}
	for _, text := range shares {
		percent, _ := strconv.ParseInt(strings.TrimSuffix(text, "%"), 10, 64)
		n.percents = append(n.percents, percent)
	}
	slices.Sort(n.percents)
	return n
}

// Noticed has the time from which each share of a rule may be reported again, for one key: at most once
// in an interval. Of a quota it has the identity of the period of each share's latest notice. The zero value has reported nothing. Its caller holds a lock.
type Noticed struct{ next []int64 }

// Due reports whether a share might be reported.
func (d *Noticed) Due(n *Notifier, now int64) bool {
	if len(d.next) != len(n.percents) {
		return true
	}
	for _, next := range d.next {
		if now >= next {
			return true
		}
	}
	return false
}

// Until returns the time from which all shares may be reported, or a time long ago.
func (d *Noticed) Until() int64 {
	if len(d.next) == 0 {
		return math.MinInt64
	}
	return slices.Max(d.next)
}

// Reached returns the shares that use has reached and that are due, as percentages in ascending order.
// They are due again after an interval.
func (d *Noticed) Reached(n *Notifier, now, used, limit int64) (reached []int64) {
	return d.reached(n, used, limit, now+int64(n.Interval), func(next int64) bool { return now >= next })
}

// ReachedIn is like Reached, for a quota's period with that identity: shares are due again in another one.
func (d *Noticed) ReachedIn(n *Notifier, period, used, limit int64) (reached []int64) {
	return d.reached(n, used, limit, period, func(latest int64) bool { return period != latest })
}

func (d *Noticed) reached(n *Notifier, used, limit, again int64, due func(int64) bool) (reached []int64) {
	if len(d.next) != len(n.percents) { // new, or another rule's
		d.next = slices.Repeat([]int64{math.MinInt64}, len(n.percents))
	}
	for i, percent := range n.percents {
		if limit > 0 && due(d.next[i]) && used >= share(limit, percent) {
			d.next[i] = again
			reached = append(reached, percent)
		}
	}
	return reached
}

// share returns a percentage of a limit, rounded up to a whole unit. Limits are at most 10^15.
func share(limit, percent int64) int64 { return (limit*percent + 99) / 100 }

// Keeps reports whether what was reported by old is still reported as by n.
func (n *Notifier) Keeps(old *Notifier) bool {
	return n != nil && old != nil && n.Interval == old.Interval && slices.Equal(n.percents, old.percents)
}

// Report reports shares that Reached has returned: to the log, and to the listeners. at has the value of
// the call, if the rule has values, and its use of the limit. It must be called without locks of rules.
func (n *Notifier) Report(now int64, reached []int64, at core.Notice) {
	for _, percent := range reached {
		notice := n.about
		notice.At, notice.Percent = time.Unix(0, now).UTC(), int(percent)
		notice.Value, notice.Used, notice.Limit = at.Value, at.Used, at.Limit
		notice.Interval = cmp.Or(at.Interval, n.Interval)
		n.record.Notices.Add(1)
		n.latest.Store(&notice)
		n.unlogged.Add(1)
		n.engine.Notice(notice)
	}
	if len(reached) > 0 {
		n.engine.Log(n, now)
	}
}

// LogPace returns the pace of the lines about notices.
func (n *Notifier) LogPace() *engine.LogPace { return &n.pace }

// Unreported reports whether there are notices that no line has reported.
func (n *Notifier) Unreported() bool { return n.unlogged.Load() > 0 }

// LogLine returns the line about these notices: the latest, and their number.
func (n *Notifier) LogLine() engine.LogLine {
	count := n.unlogged.Swap(0)
	line := engine.LogLine{Level: slog.LevelWarn, Message: "penstock: use of a limit has reached a share", Count: count}
	latest := n.latest.Load()
	if latest == nil {
		return line
	}
	line.Args = []any{"kind", latest.Kind.String(), "rule", latest.Rule, "resource", latest.Resource}
	if !latest.Value.IsNone() {
		line.Args = append(line.Args, "value", latest.Value.String())
	}
	line.Args = append(line.Args, "share", fmt.Sprintf("%d%%", latest.Percent), "used", latest.Used, "limit", latest.Limit, "interval", latest.Interval.String(), "notices", count)
	return line
}
