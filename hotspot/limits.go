package hotspot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/family"
	"github.com/penstock-go/penstock/internal/shared"
	"github.com/penstock-go/penstock/internal/shown"
)

// The range of the time for which a limit from api.Config.Limits holds.
const (
	MinTTL = 100 * time.Millisecond
	MaxTTL = 24 * time.Hour
)

// Limits from code: a call of a value whose limit isn't known, or no longer holds, starts a question in
// the background and is decided under the limit at hand. The answer becomes the plan of the value's
// cell, in place of the plans that calls name, and is evicted with the cell.
//
// Invariants, under the lock of the shard:
//
//  1. A value is in asking from before its question starts until its answer is stored, in the cell that
//     the value has by then: so one question runs at a time for a value, even if it is evicted
//     meanwhile. A cell with due == asked waits for that answer.
//  2. An answer is a quota of the latest rule: one that arrives after a reload is checked under the new
//     rule, and a reload checks the answers that are stored.
//  3. A hot value lends and shows nothing beyond due; see storeUntil. So due changes, and another
//     answer is stored, only after settle or cool.

// extras is the state of a cell that few rules need.
type extras struct {
	due      int64 // time of the next question; asked while one runs
	answered int64 // time of the latest answer
	failed   int   // questions since then

	noticed family.Noticed // shares of the limit
	lockout lockout
}

// keepsLocked reports whether a cell with the extras must be kept, as a new one would report use again, or
// lose a lockout.
func (e *extras) keepsLocked(c *controller, now int64) bool {
	return now < e.noticed.Until() || c.rule.locksOut() && e.lockout.keepsLocked(c, now)
}

// extrasLocked returns the extras of a cell, made if there are none.
func (x *cell) extrasLocked() *extras {
	if x.extras == nil {
		x.extras = &extras{due: unasked}
	}
	return x.extras
}

const (
	unasked = never + 1     // a question is due
	asked   = math.MaxInt64 // none is

	firstPause = time.Second // after an error; doubled by each further one
	lastPause  = time.Minute
)

// checkLimits refuses limits from code for a rule that the code can't know.
func (r Rule) checkLimits() error {
	if r.LimitsFromCode && r.ID == "" {
		return spec.BadField("id", "is required by limitsFromCode: api.Config.Limits knows the rule by it")
	}
	return nil
}

// questions are the questions about the values of a rule at a resource.
type questions struct {
	background func(func(context.Context)) (starts bool)

	answers, errors shared.Int64
	reported        shared.Int64 // errors
	latest          shared.Pointer[string]
	pace            engine.LogPace
}

// limitLocked returns the limit for a call of a cell's value under c, whose own plan is p and whose
// limit is q unless code sets another. It starts a question if one is due.
func (c *controller) limitLocked(x *cell, p *plan, q *quota, now int64) *quota {
	if c.asks && !q.excepted(c) && !x.isRest() {
		if now >= x.extrasLocked().due {
			c.inquireLocked(x)
		}
	}
	x.planLocked(p, now)
	return c.answeredLocked(x, q)
}

// answeredLocked returns the limit that code has set for a cell's value, or else q.
func (c *controller) answeredLocked(x *cell, q *quota) *quota {
	if c.asks && x.plan.isAnswer() && !q.excepted(c) {
		return c.quotaOf(x.value, x.plan)
	}
	return q
}

// excepted reports whether an exception sets the limit.
func (q *quota) excepted(c *controller) bool { return q != &c.quota && q.plan == nil }

// isAnswer reports whether code has set the limit.
func (p *plan) isAnswer() bool { return p != nil && p.rule != nil }

// answer returns a limit from code as a plan, or an error if the rule can't have it.
func (c *controller) answer(limit float64) (*plan, error) {
	if err := cmp.Or(c.rule.checkThreshold("limit", limit), c.rule.checkSharedLimit(limit)); err != nil {
		return nil, err
	}
	p := &plan{quota: c.rule.quota(limit), rule: c}
	p.quota.plan = p
	return p, nil
}

// answered returns the quota of an answer under c, or nil if c can't have the limit. The answer is
// another rule's only for calls that began under the previous rules.
func (c *controller) answered(p *plan) *quota {
	if p.rule != c {
		if p, _ = c.answer(p.quota.limit); p == nil {
			return nil
		}
	}
	return &p.quota
}

// inquireLocked starts a question about a cell's value. If too many run, the value's next call does.
func (c *controller) inquireLocked(x *cell) {
	s, v, hash := x.shard, x.value, x.hash
	s.settle(x)
	if !s.asking[v] {
		if !c.values.questions.background(func(ctx context.Context) { c.question(ctx, s, v, hash) }) {
			return
		}
		if s.asking == nil {
			s.asking = make(map[argument.Value]bool)
		}
		s.asking[v] = true
	}
	x.extras.due = asked
}

// question asks for the limit of a value, and stores the answer.
func (c *controller) question(ctx context.Context, s *shard, v argument.Value, hash uint64) {
	limit, ttl, err := 0.0, time.Duration(0), errors.New("api.Config.Limits panicked")
	defer func() { // even if the function ends the goroutine
		now := c.engine.Now()
		s.mu.Lock()
		delete(s.asking, v)
		if x := s.cells.find(&v, hash); x != nil && x.extras != nil {
			err = s.rule.storeLocked(x, c, limit, ttl, err, now)
		}
		s.mu.Unlock()
		c.values.questions.count(err)
		if err != nil {
			c.engine.Log(&unanswered{c}, now)
		}
	}()
	limits := c.engine.Config().Limits
	if limits == nil {
		err = errors.New("api.Config.Limits is nil: set it, or remove limitsFromCode")
		return
	}
	limit, ttl, err = limits(ctx, c.rule.ID, v)
}

// storeLocked stores the answer to a question of asker, an error or the latest rule, in the cell of its
// value. It returns the error, or one about the answer.
func (c *controller) storeLocked(x *cell, asker *controller, limit float64, ttl time.Duration, err error, now int64) error {
	e := x.extras
	switch {
	case !c.asks:
		return err
	case c.rule.ID != asker.rule.ID: // the answer is about another rule
		e.due = unasked
		return err
	}
	var p *plan
	if err == nil && (ttl < MinTTL || ttl > MaxTTL) {
		err = fmt.Errorf("ttl is %v: use a duration from %v to %v", ttl, MinTTL, MaxTTL)
	}
	if err == nil {
		p, err = c.answer(limit)
	}
	x.shard.settle(x)
	if err != nil {
		e.due = now + int64(min(lastPause, firstPause<<min(e.failed, 10)))
		e.failed++
		return err
	}
	e.due, e.answered, e.failed = now+int64(ttl), now, 0
	c.setAnswerLocked(x, p, now)
	return nil
}

// setAnswerLocked makes an answer the limit of a cell's value. An equal answer changes nothing, so that
// refusals and leases of the value stay as they are.
func (c *controller) setAnswerLocked(x *cell, p *plan, now int64) {
	if x.plan.isAnswer() && x.plan.rule == c && x.plan.quota.limit == p.quota.limit {
		return
	}
	x.shard.cool(x)
	x.plan, x.refusal = p, nil
	if x.tokens != nil {
		x.fillAsLocked(c.quotaOf(x.value, p), now)
	}
}

// keepAnswerLocked makes a cell continue from old: its answer becomes one of c.
func (c *controller) keepAnswerLocked(x *cell, old *controller) {
	e := x.extras
	if e != nil && (!c.asks || !old.asks || c.rule.ID != old.rule.ID) {
		e.due, e.failed = unasked, 0 // asked anew
	}
	if !x.plan.isAnswer() {
		return
	}
	limit := x.plan.quota.limit
	if x.plan = nil; c.asks {
		x.plan, _ = c.answer(limit)
	}
	if x.plan == nil && e != nil && e.due != asked {
		e.due = unasked
	}
}

func (q *questions) count(err error) {
	if err == nil {
		q.answers.Add(1)
		return
	}
	text := err.Error()
	q.latest.Store(&text)
	q.errors.Add(1)
}

// unanswered is the topic of the log lines about questions without an answer.
type unanswered struct{ *controller }

// LogPace returns the pace of the lines.
func (u *unanswered) LogPace() *engine.LogPace { return &u.values.questions.pace }

// Unreported reports whether there are errors that no line has reported.
func (u *unanswered) Unreported() bool {
	q := &u.values.questions
	return q.errors.Load() > q.reported.Load()
}

// LogLine returns the line about these errors.
func (u *unanswered) LogLine() engine.LogLine {
	q := &u.values.questions
	n := q.errors.Load()
	return engine.LogLine{
		Level: slog.LevelWarn, Message: "penstock: questions about limits failed; until one succeeds, values keep their latest limit, or have that of their plan or the threshold",
		Count: n - q.reported.Swap(n),
		Args:  []any{"rule", u.rule.ID, "resource", u.refusal.Resource, "error", *q.latest.Load(), "errors", n},
	}
}

// LimitStats counts the questions about limits from code.
type LimitStats struct {
	Values  int   `json:"values"`  // tracked values with a limit from code
	Answers int64 `json:"answers"` // limits that api.Config.Limits has returned
	Errors  int64 `json:"errors"`  // errors, and answers out of range
	// LastError is the text of the latest error, empty if there was none.
	LastError string `json:"lastError,omitempty"`
}

// add adds the counts of a rule at a resource.
func (s *LimitStats) add(q *questions) {
	s.Answers += q.answers.Load()
	s.Errors += q.errors.Load()
	if latest := q.latest.Load(); latest != nil {
		s.LastError = shown.Name(*latest, 200)
	}
}

// line returns the counts as text.
func (s *LimitStats) line() string {
	text := fmt.Sprintf("limits from code: %d values, %d answers, %d errors", s.Values, s.Answers, s.Errors)
	if s.LastError != "" {
		text += ", the latest: " + s.LastError
	}
	return text
}

// originLocked describes where the limit of a value comes from, as of now, or "" if code sets none.
func (c *controller) originLocked(x *cell, q *quota, now int64) string {
	switch e := x.extras; {
	case !c.asks || q.excepted(c):
		return ""
	case !q.plan.isAnswer():
		return "code has yet to set the limit"
	case e.failed > 0:
		return fmt.Sprintf("limit %v from code, %s old; the latest question failed", q.limit, shown.Duration(time.Duration(now-e.answered)))
	default:
		return fmt.Sprintf("limit %v from code, %s old", q.limit, shown.Duration(time.Duration(now-e.answered)))
	}
}
