package core

import (
	"context"
	"slices"
	"time"

	"github.com/penstock-go/penstock/core/argument"
)

// Option changes one call. Options are plain values: making and passing them
// allocates nothing, except for what Args boxes. The zero value changes nothing.
type Option struct {
	kind  optionKind
	args  []any
	param param // for Count the value is the units, for Endpoint the name is the address
}

type optionKind uint8

const (
	optionNone optionKind = iota
	optionInbound
	optionUnits
	optionPrioritized
	optionArgs
	optionParam
	optionEndpoint
	optionLongLived
	optionInboundWithin
)

// Inbound marks a call that comes from outside: it counts towards the inbound root and is subject
// to system rules.
func Inbound() Option { return Option{kind: optionInbound} }

// InboundWithin is [Inbound] for servers that leave a call only so long for all of its answer: its waits end
// in time for that, counted from when the outermost call of that kind asked to enter. A call whose turn
// is known to come later is refused at once. left says how long, if that is known; it is asked when the
// call would wait, with its context. An adapter makes the option once, since that allocates.
func InboundWithin(left func(context.Context) (time.Duration, bool)) Option {
	return Option{kind: optionInboundWithin, args: []any{left}}
}

// Units says how many units the call takes. 1 is the default, and anything below counts as 1. More
// than stat.MaxUnits (1,048,576) is refused with [ErrInvalid].
func Units(n int) Option {
	return Option{kind: optionUnits, param: param{value: argument.Int(int64(n))}}
}

// Prioritized lets the call borrow from a coming bucket, and wait until it
// begins, where a plain QPS rule would refuse it. Where a throttle or an isolation rule makes calls
// wait in a queue, the call goes before those that are not prioritized: while such calls of as many
// units wait, every second one that leaves the queue is one of them. In a throttle, the others then wait for up to
// twice as long as they were told, plus one distance, which may be longer than the rule's MaxWait.
func Prioritized() Option { return Option{kind: optionPrioritized} }

// Args are the arguments of the call, for rules that look at them: nil is no value, "" is
// one, see [Param].
func Args(args ...any) Option { return Option{kind: optionArgs, args: args} }

// Param attaches a value to the call under a name, for rules that look at it. A slice
// attaches each of its elements, as do several attachments of one name. For which values are equal,
// see [argument.Value]. nil is no value; "" is one, which all calls that attach it share, unless a
// rule says Missing. Strings, booleans and numbers allocate nothing.
func Param[T any](name string, value T) (o Option) {
	o.kind, o.param.name = optionParam, name // filled in in place, as is all below
	if v, ok := argument.Scalar(value); ok {
		o.param.value = v
		return o
	}
	if argument.IsList(value) {
		o.args = []any{value}
		return o
	}
	o.param.value = argument.Of(value)
	return o
}

// Endpoint says which of the resource's servers the call goes to, such as an address, for rules
// that judge each of them. "" is none.
func Endpoint(addr string) Option { return Option{kind: optionEndpoint, param: param{name: addr}} }

// LongLived says that how long the call takes says nothing about how well the resource does: it is
// a stream, say, or waits for messages. The call counts when it enters, holds what it was granted
// until it exits, and may fail, like any other. But it has no response time: the mean and the least
// leave it out, as do system rules for RT, breakers by slow calls and adaptive limits. Breakers by
// slow calls don't count it at all, and take it as good if it was a probe. Its end costs a lock, so
// it is meant for infrequent calls.
func LongLived() Option { return Option{kind: optionLongLived} }

func (inv *Invocation) apply(opts []Option) {
	for i := range opts {
		switch opts[i].kind {
		case optionInbound:
			inv.inbound = true
		case optionUnits:
			inv.units = max(1, opts[i].param.value.Int())
		case optionPrioritized:
			inv.prioritized = true
		case optionArgs:
			inv.args = opts[i].args
		case optionParam:
			inv.attach(&opts[i])
		case optionEndpoint:
			inv.endpoint = opts[i].param.name
		case optionLongLived:
			inv.longLived = true
		case optionInboundWithin:
			inv.inbound = true
			inv.left, _ = opts[i].args[0].(func(context.Context) (time.Duration, bool))
		}
	}
}

func (inv *Invocation) attach(o *Option) {
	if o.args == nil {
		*inv.param() = o.param
		return
	}
	argument.Each(o.args[0], func(v argument.Value) { *inv.param() = param{o.param.name, v} })
}

// param returns the place of the next attachment.
func (inv *Invocation) param() *param {
	n := len(inv.params)
	if n == cap(inv.params) {
		inv.params = slices.Grow(inv.params, 1)
	}
	inv.params = inv.params[:n+1]
	return &inv.params[n]
}
