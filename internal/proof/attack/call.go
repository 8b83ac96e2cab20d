package main

import (
	"fmt"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/internal/proof/model"
)

// call is a call with everything that rules look at, and its outcome.
type call struct {
	resource, context, origin string
	units                     int64
	inbound, prioritized      bool
	params                    map[string][]any // values attached under a name
	args                      []any
	*caller
	model *model.Call // see instants
}

// asModel returns the call in the model's form.
func (c *call) asModel() *model.Call {
	return &model.Call{
		Resource: c.resource, Context: c.context, Origin: c.origin, Units: c.units, Inbound: c.inbound, Prioritized: c.prioritized,
		Params: c.params, Args: c.args, Left: model.Endless,
	}
}

// drawCall returns a random call, with values drawn from that many.
func drawCall(r *round, values int) *call {
	c := &call{
		resource: pick(r, resources...), context: pick(r, contexts...), origin: pick(r, origins...),
		units: pick[int64](r, 1, 1, 1, 1, 2, 3, 5), inbound: r.one(2), prioritized: r.one(4),
		params: make(map[string][]any),
	}
	for _, name := range params {
		for range pick(r, 0, 1, 1, 1, 2) {
			c.params[name] = append(c.params[name], drawValue(r, values))
		}
	}
	for range r.IntN(3) {
		c.args = append(c.args, drawValue(r, values))
	}
	return c
}

// drawValue returns a number or a list of numbers.
func drawValue(r *round, values int) any {
	if r.one(6) {
		return []int{r.IntN(values), r.IntN(values)}
	}
	return r.IntN(values)
}

// options returns the call's options.
func (c *call) options() (opts []engine.Option) {
	if c.units != 1 {
		opts = append(opts, api.Units(int(c.units)))
	}
	if c.inbound {
		opts = append(opts, api.Inbound())
	}
	if c.prioritized {
		opts = append(opts, api.Prioritized())
	}
	if c.args != nil {
		opts = append(opts, api.Args(c.args...))
	}
	for _, name := range params {
		for _, v := range c.params[name] {
			opts = append(opts, api.Param(name, v))
		}
	}
	return opts
}

func (c *call) String() string {
	text := c.resource
	if c.context != "" {
		text += " in " + c.context
	}
	if c.origin != "" {
		text += " by " + c.origin
	}
	if c.units != 1 {
		text += fmt.Sprintf(" x%d", c.units)
	}
	if c.inbound {
		text += " inbound"
	}
	if c.prioritized {
		text += " prioritized"
	}
	text += fmt.Sprintf(" %v %v", c.params, c.args)
	switch {
	case c.caller == nil:
	case c.waits():
		text += fmt.Sprintf(": sleeps %v", c.sleeps)
	case c.err != nil:
		text += fmt.Sprintf(": %v", c.err)
	default:
		text += ": runs"
	}
	return text
}
