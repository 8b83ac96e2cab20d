package core

// Option changes one call. Options are plain values: making and passing them
// allocates nothing, except for what Args boxes. The zero value changes nothing.
type Option struct {
	kind optionKind
	n    int64
	args []any
}

type optionKind uint8

const (
	optionNone optionKind = iota
	optionInbound
	optionCount
	optionPrioritized
	optionArgs
)

// Inbound marks a call that comes from outside: it counts to the inbound root
// and is subject to system rules.
func Inbound() Option { return Option{kind: optionInbound} }

// Count says how many units the call takes. 1 is the default, and what anything
// below counts as. More than stat.MaxUnits (1,048,576) is refused with
// [ErrInvalid].
func Count(n int) Option { return Option{kind: optionCount, n: int64(n)} }

// Prioritized lets the call borrow from a coming bucket, and wait until it
// begins, where a plain QPS rule would refuse it. Where an isolation rule has calls
// wait in line, it goes before those that are not prioritized.
func Prioritized() Option { return Option{kind: optionPrioritized} }

// Args are the arguments of the call, for rules that look at them.
func Args(args ...any) Option { return Option{kind: optionArgs, args: args} }

func (inv *Invocation) apply(opts []Option) {
	for i := range opts {
		switch opts[i].kind {
		case optionInbound:
			inv.inbound = true
		case optionCount:
			inv.units = max(1, opts[i].n)
		case optionPrioritized:
			inv.prioritized = true
		case optionArgs:
			inv.args = opts[i].args
		}
	}
}
