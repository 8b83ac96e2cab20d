package penstockredis

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/penstock-go/penstock/cluster/store"
)

// most is the largest number passed to scripts: Lua counts in doubles.
const most = store.MostNumber - 1

// call is a command in the server's form.
type call struct {
	script  script
	args    []any // EVALSHA or EVAL, the script, the number of keys, keys, arguments
	reply   func(numbers []int64)
	numbers int // count of numbers in the reply
}

// encode returns the script call for a command.
func (s *scripts) encode(c store.Command) (call, error) {
	key := c.Result().Key
	switch c := c.(type) {
	case *store.Take:
		return s.encodeTake(key, c)
	case *store.Turn:
		return s.encodeTurn(key, c)
	case *store.Tokens:
		return s.encodeTokens(key, c)
	case *store.Permits:
		args := []any{c.Member, c.Seq, clamped(c.Limit), clamped(c.Claim), clamped(c.Need), clamped(c.Want), micro(c.Expiry)}
		return newCall(s.permits, []any{key, key + ":expiries"}, args, 4, func(n []int64) {
			c.Reply = store.PermitsReply{Held: n[0], Total: n[1], Active: n[2], Now: nano(n[3])}
		}), nil
	case *store.Presence:
		args := []any{c.Member, micro(c.Expiry), flag(c.Leave)}
		return newCall(s.presence, []any{key}, args, 2, func(n []int64) {
			c.Reply = store.PresenceReply{Members: n[0], Now: nano(n[1])}
		}), nil
	}
	return call{}, fmt.Errorf("a command of type %T is unknown: %w", c, store.ErrNotExecuted)
}

func (s *scripts) encodeTake(key string, c *store.Take) (call, error) {
	if err := c.Shape.Validate(); err != nil {
		return call{}, fmt.Errorf("%w: %w", err, store.ErrNotExecuted)
	}
	if width := c.Shape.Width(); width%time.Microsecond != 0 {
		return call{}, fmt.Errorf("buckets of %v, which are not whole microseconds: %w", width, store.ErrNotExecuted)
	}
	numbers := packed(make([]byte, 0, 8*(15+2*len(c.Backs)+2*len(c.Charges))), int64(c.Shape.Width()), int64(c.Phase), c.Span(),
		int64(c.Shape.Buckets), clamped(c.Limit), clamped(c.Need), clamped(c.Want), c.Seen, c.Shortfall, c.Ahead, clamped(int64(c.Borrow)),
		c.Seq, c.Epoch, c.NewEpoch, int64(len(c.Backs)))
	for _, list := range [][]store.Units{c.Backs, c.Charges} {
		for _, u := range list {
			numbers = packed(numbers, u.Bucket, clamped(u.Units))
		}
	}
	args := []any{"s" + strconv.FormatInt(c.Member, 10), numbers}
	return newCall(s.take, []any{key}, args, 9, func(n []int64) {
		c.Reply = store.TakeReply{
			Granted: n[0], Bucket: n[1], Current: n[2], Left: time.Duration(n[3]), Room: n[4],
			Free: time.Duration(n[5]), Active: n[6], Now: nano(n[7]), Epoch: n[8],
		}
	}), nil
}

func (s *scripts) encodeTurn(key string, c *store.Turn) (call, error) {
	units := max(c.Need, c.Want)
	if c.Spacing < 1 || units < 0 || units > most/2/int64(c.Spacing) {
		return call{}, fmt.Errorf("turns for %d units %v apart: %w", units, c.Spacing, store.ErrNotExecuted)
	}
	args := []any{int64(c.Spacing), c.Need, c.Want, min(clamped(int64(c.Within)), most/2)}
	return newCall(s.turn, []any{key}, args, 3, func(n []int64) {
		c.Reply = store.TurnReply{Granted: n[0], Wait: time.Duration(n[1]), Now: nano(n[2])}
	}), nil
}

func (s *scripts) encodeTokens(key string, c *store.Tokens) (call, error) {
	units := max(c.Need, c.Want)
	if c.Spacing < 1 || c.Need < 1 || units > most/2/int64(c.Spacing) || !(c.Unit > 0) || math.IsInf(c.Unit, 1) {
		return call{}, fmt.Errorf("%d units of a bucket, %v apart, at %v ns: %w", units, c.Spacing, c.Unit, store.ErrNotExecuted)
	}
	within := func(d time.Duration) int64 { return min(clamped(int64(d)), most/2) }
	args := []any{int64(c.Spacing), c.Need, c.Want, within(c.Hold), within(c.Within), strconv.FormatFloat(c.Unit, 'g', -1, 64)}
	return newCall(s.tokens, []any{key}, args, 3, func(n []int64) {
		c.Reply = store.TurnReply{Granted: n[0], Wait: time.Duration(n[1]), Now: nano(n[2])}
	}), nil
}

func newCall(s script, keys, args []any, numbers int, reply func([]int64)) call {
	all := make([]any, 0, 3+len(keys)+len(args))
	all = append(all, "evalsha", s.sha, len(keys))
	all = append(all, keys...)
	return call{script: s, args: append(all, args...), numbers: numbers, reply: reply}
}

// withText returns the call with the script's text, for a server that doesn't know the script.
func (c *call) withText() []any {
	args := append([]any(nil), c.args...)
	args[0], args[1] = "eval", c.script.text
	return args
}

// decode fills in the reply: a list of integers or, for a window, as many doubles.
func (c *call) decode(answer any) error {
	numbers := make([]int64, 0, 9)
	switch answer := answer.(type) {
	case []any:
		for _, v := range answer {
			if n, ok := v.(int64); ok {
				numbers = append(numbers, n)
			}
		}
	case string:
		for ; len(answer) >= 8; answer = answer[8:] {
			x := math.Float64frombits(binary.LittleEndian.Uint64([]byte(answer[:8])))
			if n := int64(x); float64(n) == x {
				numbers = append(numbers, n)
			}
		}
	}
	if len(numbers) != c.numbers {
		return fmt.Errorf("reply %q doesn't fit the command", answer)
	}
	c.reply(numbers)
	return nil
}

// packed appends numbers as doubles, for struct.unpack.
func packed(to []byte, numbers ...int64) []byte {
	for _, n := range numbers {
		to = binary.LittleEndian.AppendUint64(to, math.Float64bits(float64(n)))
	}
	return to
}

// clamped limits n to the range that scripts accept.
func clamped(n int64) int64 { return min(max(n, 0), most) }

// micro rounds a duration up to whole microseconds.
func micro(d time.Duration) int64 { return int64((d + time.Microsecond - 1) / time.Microsecond) }

func nano(micros int64) int64 { return min(micros, math.MaxInt64/1000) * 1000 }

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}
