package store

import (
	"context"
	"errors"
	"time"

	"github.com/penstock-go/penstock/stat"
)

// Store is the state that members share. It uses its own clock for everything it counts. It is safe
// for concurrent use. Package storetest checks an implementation.
type Store interface {
	// Do executes commands whose keys are all on one shard, each atomically and in this order, in
	// one round trip. It fills in the reply or the error of each, and returns when all are done, at
	// the latest when ctx ends. If no call waits, ctx has a deadline: the store may take until
	// then, for instance to connect, regardless of its usual limit. Do never sends a command again
	// unless it was certainly not executed. A panic or an impossible reply, such as a missing one,
	// counts as no reply.
	Do(ctx context.Context, batch []Command)
	// Shard returns the number of the shard that a key is on, from 0: keys with the same number may
	// be in one batch, and become unreachable together. A single server is shard 0. Members ask
	// before each batch, and follow a key whose number changes. Shard must return at once. After a
	// panic the store counts as unreachable, until a later call returns.
	Shard(key string) int
}

// Prober is a store that can check its own setup, such as settings and permissions. A member calls
// Probe in the background when it joins and each time the store is back, and logs the error.
type Prober interface {
	Probe(ctx context.Context) error
}

// Starter is a [Store] with an asynchronous Do: Start begins the batch, and calls done once, when
// the batch has its replies, from any goroutine and perhaps before Start returns. A member calls it
// instead of Do. It is meant for in-process stores, so that a cluster runs on a test's clock.
type Starter interface {
	Start(ctx context.Context, batch []Command, done func())
}

// Command is a [Take], a [Turn], a [Tokens], a [Permits] or a [Presence].
type Command interface {
	// Result returns the part that all commands have: the key and the error.
	Result() *Outcome
}

// Outcome is a command's key, and whether it was executed.
type Outcome struct {
	Key string
	// Err is nil if the store has replied. Otherwise it is unknown whether the command was
	// executed, unless Err wraps [ErrNotExecuted].
	Err error
}

// Result returns the receiver.
func (o *Outcome) Result() *Outcome { return o }

// ErrNotExecuted is wrapped by the error for a command that was certainly not executed and never
// will be.
var ErrNotExecuted = errors.New("the store did not execute the command")

// ErrForeign is wrapped by the error for a command whose key holds a value that no member wrote.
var ErrForeign = errors.New("the key holds a value that Penstock did not write: delete the key, or use another namespace")

// ErrMoving is wrapped by the error for a command whose key can't be used while it is being moved
// between servers. The shard may still be reachable.
var ErrMoving = errors.New("the key is being moved from one server to another")

// MostNumber is the limit of numbers that stores must be able to count: 2^53. All numbers in
// commands and replies are below it, except for durations in nanoseconds.
const MostNumber = 1 << 53

// Caller identifies a command: the member that sends it, and its number.
type Caller struct {
	// Member identifies the incarnation: a random number from 1, drawn when a member joins.
	Member int64
	// Seq grows with each command that the member sends to a key, from 1. If executing a command
	// again would count something twice, the store ignores that part when it has seen this number,
	// or a higher one, from this member.
	Seq int64
}

// Units is a number of units in a bucket.
type Units struct {
	Bucket int64 // the bucket's number
	Units  int64
}

// Ring is a window as the store keeps it: a shape, and the offset of its buckets. Bucket b begins
// at Phase + b × width, in the store's time since 1970. A window counts Span buckets, including the
// current one; earlier ones are forgotten.
type Ring struct {
	Shape stat.Shape    // buckets last whole microseconds
	Phase time.Duration // at least 0, less than a bucket
}

// Span returns the number of buckets that count: the shape's, and one more if it is strict.
func (r Ring) Span() int64 {
	if r.Shape.Strict {
		return int64(r.Shape.Buckets) + 1
	}
	return int64(r.Shape.Buckets)
}

// Bucket returns the number of the bucket at a time, in nanoseconds since 1970.
func (r Ring) Bucket(now int64) int64 {
	width := int64(r.Shape.Width())
	b := (now - int64(r.Phase)) / width
	if (now-int64(r.Phase))%width < 0 {
		b--
	}
	return b
}

// Begins returns the begin of a bucket, in nanoseconds since 1970.
func (r Ring) Begins(bucket int64) int64 {
	return int64(r.Phase) + bucket*int64(r.Shape.Width())
}

// Take leases units of a window, and takes back unspent units.
//
// The store executes these steps in order. The current bucket is head, the newest bucket that was
// ever current by the clock: a borrowed bucket doesn't move head, and if the clock is set back,
// head stays until the clock reaches its end. If the clock is behind head by the whole ring (Span
// buckets) or more, all units of the key and head move to the bucket that is current by the clock,
// under a new epoch. Units of head and of later buckets, which members may still spend, are counted
// there and again ahead of it: one bucket further ahead than the last of them was, at most
// Shape.Buckets+1, or 1 if Span is 1.
//
//  1. A key that doesn't exist gets NewEpoch as its epoch; a key that was just moved as above gets
//     NextEpoch.
//  2. A bucket counts the members that asked for units (Need or Want) and whose Seen was another
//     bucket. active is the count of the current bucket, including this member, or of the previous
//     one if that is higher; at least 1.
//  3. If Epoch is the key's and Seq was not seen: Backs are subtracted from their buckets, down to
//     0, and Charges are added, regardless of the limit. Buckets that no longer count are ignored;
//     charges to a bucket that has not begun go to the current one.
//  4. If Epoch is neither 0 nor the key's, nothing is granted: the member must first charge the
//     units it has admitted. Nor if Need and Want are 0.
//  5. The target is Ahead if that has not begun, at most Shape.Buckets ahead; otherwise the current
//     bucket. n units fit a bucket if every window that contains it, up to the window that ends with
//     the last bucket that holds units, holds at most Limit-n. If Need doesn't fit, nothing is
//     granted there; otherwise max(Need, min(Want, room/sharers)), where room is the number of units
//     that fit. A bucket counts the members that were granted some units this way while it was
//     current, but fewer than Want, and whose Shortfall was another bucket. If the target is the
//     current bucket and the previous one counts any such member, sharers is the larger of the two
//     buckets' counts plus one, at most active. Otherwise sharers is active.
//  6. If Need doesn't fit and Borrow is not 0, Need is granted in the first upcoming bucket where
//     it fits that begins in less than Borrow by the clock, at most Shape.Buckets ahead.
//
// The key lives for at least (Buckets+2) × width after its last use, and is gone a width later.
// After a grant in a later bucket, it lives longer by the distance to that bucket. What the store
// has seen of a member is kept for Span+Buckets buckets after its last command.
type Take struct {
	Outcome
	Caller
	Ring
	Limit int64 // units in a window, floored
	Need  int64 // minimum number of useful units; fewer units are not granted
	Want  int64 // maximum number of useful units
	// Seen is the current bucket of the latest reply to a Take that asked for units, or 0 if there
	// was none.
	Seen int64
	// Shortfall is the current bucket of the latest reply that granted some units, but fewer than
	// Want, and not by Borrow, or 0 if there was none.
	Shortfall int64
	// Ahead is the later bucket to take units from, or 0 for the current one. If it is set, Borrow
	// is 0.
	Ahead int64
	// Borrow is the longest wait of a call until Need fits a later bucket, or 0 if it may not wait.
	Borrow time.Duration

	Epoch    int64 // the key's, by the latest reply, or 0 if the member has no units there that count
	NewEpoch int64 // a random number from 2 to MaxEpoch, for a new key
	Backs    []Units
	Charges  []Units

	Reply TakeReply
}

// MaxEpoch is the highest NewEpoch, 2^52.
const MaxEpoch = 1 << 52

// NextEpoch returns the epoch after the given one: its sum with NewEpoch, less 2^53-2 if that is
// 2^53 or more. It depends on both, since a command that is executed twice must begin another epoch
// the second time.
func (t *Take) NextEpoch(epoch int64) int64 {
	if epoch += t.NewEpoch; epoch >= MostNumber {
		epoch -= MostNumber - 2
	}
	return epoch
}

// TakeReply is the store's reply to a [Take].
type TakeReply struct {
	Granted int64 // units
	Bucket  int64 // the bucket they were charged in
	Current int64 // the current bucket
	// Left is the time until the current bucket ends by the clock: more than 0, and more than its
	// width if the clock was set back.
	Left time.Duration
	Room int64 // further units that fit the target bucket
	// Free is the time until a unit fits, if no member returns any, or 0 if one fits now or the
	// limit is 0.
	Free   time.Duration
	Active int64 // members; see Take
	Now    int64 // the store's clock, in nanoseconds since 1970, even if it was set back
	Epoch  int64
}

// Turn leases turns of a throttle. The store keeps the time of the latest turn it gave out. The
// first turn is Need × Spacing after that, or now if that has passed; each further turn is for one
// unit, Spacing after the one before. If the first turn would be later than Within from now, none
// is given. If the clock was set back since the latest command, the latest turn moves back by the
// same amount. A command that is executed twice gives turns twice, and those of one reply are lost.
//
// After each command the store remembers the latest turn, even after it has passed, for at least a
// minute, and for Within + max(64, Need) × Spacing. So no call of up to 64 units comes too early,
// nor does any call if all have equally many units. A call of more units gets its turn at once if
// the store remembers none, because the latest command was long ago and had fewer units.
type Turn struct {
	Outcome
	Spacing time.Duration // between two units, from 1 ns to 24 h
	Need    int64         // units of the call that gets the first turn; Need × Spacing is below 2^52 ns, 52 days
	Want    int64         // units in total, if more than Need; the same bound holds
	Within  time.Duration

	Reply TurnReply
}

// TurnReply is the store's reply to a [Turn] or a [Tokens].
type TurnReply struct {
	Granted int64         // units; of a Turn, 0 or the larger of Need and Want
	Wait    time.Duration // until the first turn, even if it was not given
	Now     int64         // see TakeReply
}

// Tokens leases units of a token bucket. Each unit has a turn, Spacing after the one before. Its
// member uses it by then, and earlier by at most the time in which the bucket gains its burst. So the
// units that are used in any interval have their turns in that interval and that time after it: no
// more than the burst, one, and as many as the bucket gains in the interval.
//
// The store keeps the time at which the bucket will be full, which is Spacing after the latest turn
// it gave out, and the Unit of the latest command. It executes these steps in order:
//
//  1. If the clock was set back since the latest command, the bucket is full earlier by the same
//     amount. If the bucket isn't full and the latest command's Unit was another, the time until it
//     is full is multiplied by the quotient of this Unit and that one, and rounded up, to at most
//     2^52 ns: it is short of as many units as before.
//  2. The first turn comes once the bucket is full, or now; each further turn is Spacing after the
//     one before. Turns later than Within from now are not given. If fewer than Need remain, none
//     is given; otherwise max(Need, Want) at most.
//  3. If some were given, the bucket will be full Spacing after the last one; and if the first turn
//     was to come in less than Hold, later by the difference: the member may use it until then, and
//     delay all others by as much.
//
// A command that is executed twice takes units twice, and those of one reply are lost. The store
// remembers the bucket until it is full, and for at least a minute after that.
type Tokens struct {
	Outcome
	Unit    float64       // time in which the bucket gains a unit, in nanoseconds, more than 0
	Spacing time.Duration // between two turns, from 1 ns to 24 h
	Need    int64         // at least 1; Need × Spacing is below 2^52 ns, 52 days
	Want    int64         // units in total, if more than Need; the same bound holds
	Hold    time.Duration // so that the first turn doesn't pass before the reply arrives
	Within  time.Duration

	// Reply has the wait until the first turn even if that was not given.
	Reply TurnReply
}

// Permits sets the number of permits of a semaphore that the member holds. The number is absolute:
// executing the command again changes nothing.
//
// The store first releases the permits of expired members. If it has seen Seq, or a higher one, it
// only extends this member's expiry. Otherwise, if the other members hold others permits and this
// one holds held:
//
//	keeps  max(Claim, min(held, Want)), even beyond the limit: running calls were let in
//	free   Limit - others - keeps, at least 0
//	holds  keeps if Need is beyond keeps + free; else max(keeps, Need, min(Want, keeps + free/active))
//
// active is the number of members that hold permits, including this one. A member expires Expiry
// after its latest command. A member with 0 permits doesn't count, but its Seq is kept until it
// expires. If the clock was set back since the latest command, the members' expiries move back by
// the same amount.
type Permits struct {
	Outcome
	Caller
	Limit  int64
	Claim  int64 // permits of running calls
	Need   int64 // permits in total: with fewer, the asking call is refused
	Want   int64 // permits in total that are useful; the others are given back
	Expiry time.Duration

	Reply PermitsReply
}

// PermitsReply is the store's reply to a [Permits].
type PermitsReply struct {
	Held   int64 // by this member
	Total  int64 // by all members
	Active int64 // members that hold permits
	Now    int64 // see TakeReply
}

// Presence announces a member, and returns the number of members. Members that have been silent for
// Expiry don't count. For a clock that is set back, see [Permits].
type Presence struct {
	Outcome
	Caller
	Expiry time.Duration
	Leave  bool // the member leaves

	Reply PresenceReply
}

// PresenceReply is the store's reply to a [Presence].
type PresenceReply struct {
	Members int64 // including this one, unless it leaves
	Now     int64 // see TakeReply
}
