package family

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/cluster"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/sharing"
)

// CheckSharedBucket returns an error if members can't share a token bucket, as a [spec.FieldError].
// The rule has passed Check and [CheckBucket].
func CheckSharedBucket(r cluster.Rule, threshold float64, interval time.Duration, burst int, costs bool) error {
	if threshold <= 0 {
		return nil // no call passes
	}
	err := r.CheckTurns(threshold, interval)
	if costs {
		err = CheckSharedUnits(threshold)
	}
	if err != nil {
		return err
	}
	perUnit, timeout := float64(interval)/threshold, r.Normalized().Timeout
	switch gains := float64(burst) * perUnit; {
	case gains < float64(timeout):
		least := int64(math.Ceil(float64(timeout) / perUnit))
		return spec.BadField("burst", "is %d, but in a cluster must be at least %d, which the bucket gains in the timeout, %v: a unit must not be due again before the store's reply arrives", burst, least, timeout)
	case gains > float64(maxSharedFill):
		return spec.BadField("burst", "is %d, which the bucket gains in more than %v, the most that members can share: use a lower burst, or a higher threshold", burst, maxSharedFill)
	}
	return nil
}

// maxSharedFill is the longest time in which a shared bucket may gain its burst. A store counts at most
// 52 days of turns.
const maxSharedFill = 240 * time.Hour

// sharedBucket is a token bucket that members share.
type sharedBucket struct {
	fetcher fetcher
	unit    sharedUnit
	bucket  *sharing.Bucket
	limit   int64
	size    int64 // of the bucket, at least
	refusal *core.BlockError
	away    string // explanation while the store is away
}

// NewSharedBucket returns the token bucket of a key, which rejects calls with refusal. The unit is
// empty for calls. Its rule has been validated; see [CheckSharedBucket].
func NewSharedBucket(m *sharing.Member, key, unit string, c sharing.BucketConfig, refusal *core.BlockError) Shared {
	c.Costs = unit != ""
	return &sharedBucket{fetcher{m}, sharedUnit(unit), must(m.Bucket(key, c)), int64(c.Threshold), c.Burst + 1, refusal, storeAway[c.OnFailure]}
}

func (b *sharedBucket) Ask(inv *engine.Invocation, n int64) engine.Verdict {
	if r, _ := inv.HeldFor(b); r != nil {
		return engine.Verdict{}
	}
	switch b.bucket.Ask(inv.Now(), n) {
	case sharing.Fits:
		return engine.Verdict{}
	case sharing.Refuses:
		return b.refuse(inv, n)
	}
	return inv.Want(b.fetcher, b.want(inv, n))
}

// refuse returns the refusal of n units. For a rule with a unit it knows how long these take, and for
// more than the bucket holds that waiting doesn't help.
func (b *sharedBucket) refuse(inv *engine.Invocation, n int64) engine.Verdict {
	return engine.Verdict{Block: b.block(inv, n)}
}

func (b *sharedBucket) block(inv *engine.Invocation, n int64) *core.BlockError {
	if b.unit == "" && n <= b.size {
		return b.refusal
	}
	return engine.Needing(b.refusal, &sharedNeed{b.refusal.Refuser(), inv.Engine(), b, n})
}

// Take takes units. A call that waits for another rule keeps them, as those of a local bucket.
func (b *sharedBucket) Take(inv *engine.Invocation, n int64) engine.Verdict {
	if r, _ := inv.HeldFor(b); r != nil {
		return engine.Verdict{}
	}
	token, ok := b.bucket.TryTake(inv.Now(), n)
	switch {
	case ok:
		b.reserve(inv, n, token)
		return engine.Verdict{}
	case b.bucket.Look(inv.Now(), n) == sharing.Refuses:
		return b.refuse(inv, n)
	}
	inv.WantLater()
	return engine.Verdict{}
}

func (b *sharedBucket) reserve(inv *engine.Invocation, n, token int64) {
	inv.ReserveUnits(b, n, token)
	b.unit.settles(inv)
}

func (b *sharedBucket) Want(inv *engine.Invocation, n int64) {
	if r, _ := inv.HeldFor(b); r == nil {
		inv.Want(b.fetcher, b.want(inv, n))
	}
}

func (b *sharedBucket) askShadow(inv *engine.Invocation, n int64) sharing.Answer {
	return b.bucket.Ask(inv.Now(), n)
}

func (b *sharedBucket) takeShadow(inv *engine.Invocation, n int64) sharing.Answer {
	if token, ok := b.bucket.TryTake(inv.Now(), n); ok {
		b.reserve(inv, n, token)
		return sharing.Fits
	}
	return sharing.NeedsMore
}

func (b *sharedBucket) need(_ *engine.Invocation, n int64) (*sharing.Member, sharing.Need) {
	return b.fetcher.Member, sharing.Need{Limit: b.bucket, Units: n}
}

// GiveBack gives the units of a call that doesn't run back to the lease.
func (b *sharedBucket) GiveBack(r *engine.Reservation, now int64) { b.Refund(r, r.Units, now) }

// Refund gives units that a call didn't use back to the lease.
func (b *sharedBucket) Refund(r *engine.Reservation, n, _ int64) {
	r.Token = b.bucket.Cancel(r.Token, n)
}

// Charge counts units that a call used beyond its reservation.
func (b *sharedBucket) Charge(_ *engine.Reservation, n, now int64) (forgiven int64) {
	b.bucket.Charge(now, n)
	return 0
}

// Counts returns what the reservations of all versions of the rule have in common.
func (b *sharedBucket) Counts() any { return b.bucket }

func (b *sharedBucket) RetryAfter(now, n int64) (time.Duration, bool) {
	return b.bucket.RetryAfter(now, n)
}

func (b *sharedBucket) want(inv *engine.Invocation, n int64) engine.Want {
	return engine.Want{Limit: b.bucket, Units: n, Holder: b, By: b.block(inv, n), Timeout: b.bucket.Timeout(), Unit: string(b.unit)}
}

// Left returns the leased units or, while the store is away, those in the member's own bucket.
func (b *sharedBucket) Left(now int64) (left, limit int64, known bool) {
	if left, _, ok := b.bucket.Share(now); ok {
		return int64(left), b.limit, true
	}
	left, _ = b.bucket.Left(now)
	return left, b.limit, true
}

func (b *sharedBucket) Explain(inv *engine.Invocation, n int64, j *core.Judgement) core.Measure {
	switch b.bucket.Look(inv.Now(), n) {
	case sharing.Refuses:
		wait, known := b.bucket.RetryAfter(inv.Now(), n)
		inv.JudgeRefused(j, wait, known)
		j.About = known
	case sharing.NeedsMore:
		j.Why = WouldAskStore
	}
	if b.bucket.Stats().Unreachable {
		j.Why = b.away
	}
	return b.Measure(inv.Now())
}

func (b *sharedBucket) Measure(now int64) core.Measure {
	if left, size, ok := b.bucket.Share(now); ok {
		whole := int64(left)
		return core.Measure{Of: "tokens taken, of this member", Measured: size - left, Limit: size, Remaining: &whole}
	}
	left, size := b.bucket.Left(now)
	return core.Measure{Of: b.unit.name() + " of a bucket, on a lease", Measured: float64(left), Limit: float64(size), AtHand: true}
}

func (b *sharedBucket) Idle(now int64) bool { return b.bucket.Idle(now) }

func (b *sharedBucket) stats() sharing.Stats { return b.bucket.Stats() }
