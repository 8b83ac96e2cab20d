package engine

import (
	"context"
	"slices"
	"time"

	"github.com/penstock-go/penstock/core/argument"
)

// Option changes one call. Options are plain values: making and passing them allocates nothing,
// except for the values that Args boxes. The zero value changes nothing.
type Option struct {
	kind  optionKind
	level level
	args  []any
	param param // for Units and Cost the value is the units, for Endpoint the name is the address
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
	optionCost
	optionCriticality
	optionRetry
)

// Inbound marks a call that comes from outside; see api.Inbound, as for all options below.
func Inbound() Option { return Option{kind: optionInbound} }

// InboundWithin is like [Inbound], but for servers that limit the time until a call's response;
// left returns the remaining time.
func InboundWithin(left func(context.Context) (time.Duration, bool)) Option {
	return Option{kind: optionInboundWithin, args: []any{left}}
}

// Units sets the units that the call takes.
func Units(n int) Option {
	return Option{kind: optionUnits, param: param{value: argument.Int(int64(n))}}
}

// Prioritized lets the call borrow from a later bucket, and jump ahead of others in a queue.
func Prioritized() Option { return Option{kind: optionPrioritized} }

// Args sets the arguments of the call.
func Args(args ...any) Option { return Option{kind: optionArgs, args: args} }

// Param attaches a value to the call under a name.
func Param[T any](name string, value T) (o Option) {
	o.kind, o.param.name = optionParam, name // filled in in place, as is everything below
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

// planName is the name under which a call's plan is attached.
const planName = "\x00plan"

// Plan names the plan of the call.
func Plan(name string) Option {
	if name == "" {
		return Option{}
	}
	return Param(planName, name)
}

// Plan returns the name of the call's plan, the last if there are several, or none.
func (inv *Invocation) Plan() argument.Value {
	for i := len(inv.params) - 1; i >= 0; i-- {
		if p := &inv.params[i]; p.name == planName {
			return p.value
		}
	}
	return argument.Value{}
}

// Endpoint names the server of the resource that the call goes to.
func Endpoint(addr string) Option { return Option{kind: optionEndpoint, param: param{name: addr}} }

// LongLived marks a call without a response time.
func LongLived() Option { return Option{kind: optionLongLived} }

// Retry marks the call as another attempt of one that failed.
func Retry() Option { return Option{kind: optionRetry} }

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
		case optionCost:
			inv.addCost(opts[i].param.name, opts[i].param.value.Int())
		case optionCriticality:
			inv.level = opts[i].level
		case optionRetry:
			inv.retry = true
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

// param returns a pointer to the next attachment.
func (inv *Invocation) param() *param {
	n := len(inv.params)
	if n == cap(inv.params) {
		inv.params = slices.Grow(inv.params, 1)
	}
	inv.params = inv.params[:n+1]
	return &inv.params[n]
}
