package store

import (
	"context"
	"errors"
	"time"

	"github.com/penstock-go/penstock/stat"
)

// Store is what members share. It goes by its own clock for everything it counts. It is safe for
// concurrent use. Package storetest checks what a store must do.
type Store interface {
	// Do executes commands whose keys are all on one shard, each of them atomically and in
	// this order, in one round trip. It fills in the reply or the error of each and returns
	// when all have one, at the latest when ctx ends. Where no call waits, ctx has a deadline: the
	// store may take until then, to connect for instance, whatever its usual limit. Do never sends
	// a command again unless it was certainly not executed. A panic, or a reply that can't be one,
	// such as one that was not filled in, counts as a store that doesn't answer.
	Do(ctx context.Context, batch []Command)
	// Shard returns the number of the shard that a key is on, from 0: keys with the same number may
	// be in one batch, and are out of reach together. A store that is one server returns 0. Members ask
	// before each batch, and follow a key whose number has changed. Shard must return immediately. A
	// panic counts as a store that doesn't answer, until a later call returns a number.
	Shard(key string) int
}

// Prober is a store that can say what it lacks, such as a setting or a permission. A member asks it in the background when it
// joins and each time that the store is back, and logs the error.
type Prober interface {
	Probe(ctx context.Context) error
}

// Starter is a [Store] that need not be waited for: Start begins what Do does, and calls done once,
// when the batch has its replies, from any goroutine and perhaps before Start returns. A member
// calls it instead of Do. It is for stores within the process, so that a cluster runs on a clock
// that a test moves.
type Starter interface {
	Start(ctx context.Context, batch []Command, done func())
}

// Command is a [Take], a [Turn], a [Permits] or a [Presence].
type Command interface {
	// Result is what the command has in common with others: its key and its error.
	Result() *Outcome
}

// Outcome is where a command goes, and whether it was executed.
type Outcome struct {
	Key string
	// Err is nil if Reply holds what the store said. Otherwise it is unknown whether the command
	// was executed, unless Err wraps [ErrNotExecuted].
	Err error
}

// Result returns the receiver.
func (o *Outcome) Result() *Outcome { return o }

// ErrNotExecuted is wrapped by the error of a command that the store has certainly not executed, nor
// ever will.
var ErrNotExecuted = errors.New("the store did not execute the command")

// ErrForeign is wrapped by the error of a command whose key holds something that no member wrote.
var ErrForeign = errors.New("the key holds a value that is not of this library: remove it, or use another namespace")

// ErrMoving is wrapped by the error of a command whose key is on its way from one server to another, and can't be used
// meanwhile. It says nothing on whether the shard is away.
var ErrMoving = errors.New("the key is being moved from one server to another")

// MostNumber is the first integer that stores need not be able to count to: 2^53. All numbers in
// commands and replies are below it, apart from durations in nanoseconds.
const MostNumber = 1 << 53

// Caller says which member sends a command, and which of its commands it is.
type Caller struct {
	// Member is the incarnation: a random number from 1 on, drawn when a member joins.
	Member int64
	// Seq grows with each command that the member sends to a key, from 1. Where executing a command
	// again would count something twice, a store refuses it if it has seen this number, or a higher
	// one, from this member.
	Seq int64
}

// Units is a number of units in a bucket.
type Units struct {
	Bucket int64 // the number of the bucket
	Units  int64
}

// Ring is a window as the store keeps it: a shape, and where its buckets begin.
// Bucket b begins at Phase + b × width, in the store's time since 1970. A window counts
// Span buckets, the current one included; those before it are forgotten.
type Ring struct {
	Shape stat.Shape    // of buckets that last whole microseconds
	Phase time.Duration // at least 0, less than a bucket
}

// Span is how many buckets count: as many as the shape has, or one more if it is strict.
func (r Ring) Span() int64 {
	if r.Shape.Strict {
		return int64(r.Shape.Buckets) + 1
	}
	return int64(r.Shape.Buckets)
}

// Bucket is the number of the bucket at a time, in nanoseconds since 1970.
func (r Ring) Bucket(now int64) int64 {
	width := int64(r.Shape.Width())
	b := (now - int64(r.Phase)) / width
	if (now-int64(r.Phase))%width < 0 {
		b--
	}
	return b
}

// Begins is when a bucket begins, in nanoseconds since 1970.
func (r Ring) Begins(bucket int64) int64 {
	return int64(r.Phase) + bucket*int64(r.Shape.Width())
}

// Take leases units of a window, and hands units back.
//
// The store executes it in this order. The current bucket is head, the newest one that ever was current
// by the clock: a borrowed bucket doesn't move head, and where the clock is set back, head lasts until the
// clock gets to its end. Where the clock is behind head by the whole ring (Span buckets) or more, all
// units that the key holds are moved to the bucket that is current by the clock, under a new epoch, and head
// with them. Units of head and of coming buckets, which members may yet spend, are counted there and a second
// time ahead of it: one bucket further than the last of them lay ahead, at most Shape.Buckets+1, or 1 where Span is.
//
//  1. A key that doesn't exist has NewEpoch as its epoch, one that was just moved as above the epoch that
//     NextEpoch says.
//  2. A bucket counts the members that asked for units (Need or Want) and whose Seen was another
//     bucket. active is that of the current bucket, this one included, or that of the one before,
//     if that is more; at least 1.
//  3. If Epoch is the key's and Seq was not seen: Backs are taken out of their buckets, as far as these
//     hold so much, and Charges are added, whatever the limit; a bucket that no longer counts is
//     ignored, and what is charged to one that has not begun goes to the current one.
//  4. If Epoch is neither 0 nor the key's, nothing is granted: the member has to charge first what it
//     has admitted. Nor if Need and Want are 0.
//  5. The target is Ahead if that has not begun, at most Shape.Buckets ahead; else the current bucket.
//     n units fit a bucket if every window that contains it, up to the one that ends with the last bucket
//     that holds units, holds at most Limit-n. If Need doesn't fit nothing is granted there; else
//     max(Need, min(Want, room/sharers)), where room is how many units fit.
//     A bucket counts the members that were granted some units this way while it was current, but fewer than Want, and
//     whose Lacked was another bucket. If the target is the current bucket, and the bucket before it counts any member, then
//     sharers is the larger of the two buckets' counts plus one, at most active. Otherwise sharers is active.
//  6. If Need fits nothing and Borrow is not 0, the first coming bucket that begins in less than
//     Borrow by the clock, at most Shape.Buckets ahead, where Need fits is granted Need.
//
// The key lives for at least (Buckets+2) × width after its last use, and is gone a width later. Where units were granted
// in a coming bucket, it lives longer by as much as that lies ahead. What the store has seen of a
// member is kept for Span+Buckets buckets after its last command.
type Take struct {
	Outcome
	Caller
	Ring
	Limit int64 // units in a window, floored
	Need  int64 // at least so many, or none
	Want  int64 // more are welcome
	// Seen is the bucket that was current by the last reply to a Take that asked for units, 0 if
	// there was none.
	Seen int64
	// Lacked is the bucket that was current by the last reply that granted some units, but fewer than Want, and not by
	// Borrow; 0 if there was none.
	Shortfall int64
	// Ahead is the coming bucket from which units are wanted, 0 for the current one. If it is set,
	// Borrow is 0.
	Ahead int64
	// Borrow is how long a call may wait for Need to fit a coming bucket; 0: it may not.
	Borrow time.Duration

	Epoch    int64 // the key's by the last reply; 0 if the member has nothing there that counts
	NewEpoch int64 // a random number from 2 to MaxEpoch, for a key that starts a new epoch
	Backs    []Units
	Charges  []Units

	Reply TakeReply
}

// MaxEpoch is the highest NewEpoch, 2^52.
const MaxEpoch = 1 << 52

// NextEpoch is the epoch of a key that had one and begins another: their sum, less 2^53-2 if that is 2^53 or
// more. It depends on both, since the same command may come twice, and is then to begin a third.
func (t *Take) NextEpoch(epoch int64) int64 {
	if epoch += t.NewEpoch; epoch >= MostNumber {
		epoch -= MostNumber - 2
	}
	return epoch
}

// TakeReply is the store's reply to a [Take].
type TakeReply struct {
	Granted int64 // units
	Bucket  int64 // that they were charged in
	Current int64 // the bucket that is current
	// Left is how long it is until the current bucket ends by the clock: more than 0, and more than its width
	// where the clock was set back.
	Left time.Duration
	Room int64 // how many more units fit the target bucket
	// Free is how long until a unit fits, if no member hands any back; 0 if one fits now, or if the
	// limit is 0.
	Free   time.Duration
	Active int64 // members, see Take
	Now    int64 // what the store's clock shows, in nanoseconds since 1970, even if it has been set back
	Epoch  int64
}

// Turn leases turns of a throttle. The store keeps the time of the last turn that it gave away.
// The first turn is Need × Spacing after that, or now if that has passed; each further one is of
// one unit, Spacing after the one before. If the first would be more than Within from now, none is
// given. Where the clock has been set back since the last command, the last turn is moved back by
// as much. A command that is executed twice gives turns twice, and those of one reply are lost.
//
// After each command the store remembers the last turn, also once that has passed, for at least a
// minute, and for Within + max(64, Need) × Spacing. So no call of up to 64 units comes too early, nor
// does any where all have as many. A call of more units that comes when nothing is remembered, as
// there was no command for so long and the latest was of fewer units, has its turn at once.
type Turn struct {
	Outcome
	Spacing time.Duration // between two units, from 1 ns to 24 h
	Need    int64         // units of the call that gets the first turn; Need × Spacing is below 2^52 ns, 52 days
	Want    int64         // units in all, if that is more; so is Want × Spacing
	Within  time.Duration

	Reply TurnReply
}

// TurnReply is the store's reply to a [Turn].
type TurnReply struct {
	Granted int64         // units: none, or Need or, if that is more, Want
	Wait    time.Duration // until the first turn, also if it was not given
	Now     int64         // see TakeReply
}

// Permits sets how many permits of a semaphore the member holds. The number is absolute: a second
// execution changes nothing.
//
// The store first releases the permits of members that have expired. If it has seen Seq, or a
// higher one, it changes only the time at which this member expires. Otherwise, where others is
// what the other members hold, and held what this one holds:
//
//	keeps  max(Claim, min(held, Want)), also beyond the limit: calls that run have been let in
//	free   Limit - others - keeps, at least 0
//	holds  keeps if Need is beyond keeps + free; else max(keeps, Need, min(Want, keeps + free/active))
//
// active is the number of members that hold any, this one included. A member expires Expiry after
// its last command. One that holds 0 doesn't count as a member, but its Seq is kept until then.
// Where the clock has been set back since the last command, the times at which members expire are
// moved by as much.
type Permits struct {
	Outcome
	Caller
	Limit  int64
	Claim  int64 // permits of calls that run
	Need   int64 // permits in all: with fewer, the call that asks is refused
	Want   int64 // permits in all that are welcome; those beyond are given back
	Expiry time.Duration

	Reply PermitsReply
}

// PermitsReply is the store's reply to a [Permits].
type PermitsReply struct {
	Held   int64 // by this member
	Total  int64 // by all
	Active int64 // members that hold any
	Now    int64 // see TakeReply
}

// Presence announces a member, and asks how many there are. Members that have been silent for
// Expiry don't count. For a clock that has been set back, see [Permits].
type Presence struct {
	Outcome
	Caller
	Expiry time.Duration
	Leave  bool // the member goes

	Reply PresenceReply
}

// PresenceReply is the store's reply to a [Presence].
type PresenceReply struct {
	Members int64 // this one included, unless it leaves
	Now     int64 // see TakeReply
}
