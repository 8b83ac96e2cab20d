package engine

import (
	"github.com/penstock-go/penstock/core/argument"
)

// Occurrence is a value of a call and the number of times the call names it.
type Occurrence struct {
	Value argument.Value
	Times int64
}

// ArgValues returns the values of an argument of the call, except nil: one, or for a slice one per
// element. An index below 0 counts from the end, -1 being the last; if there is no such argument
// there are no values. The result belongs to the invocation: the next call of ArgValues or
// ParamValues overwrites it.
func (inv *Invocation) ArgValues(index int) []Occurrence {
	inv.valued = true
	inv.values = inv.values[:0]
	if i := inv.argAt(index); i >= 0 {
		inv.addValues(inv.args[i])
	}
	return inv.values
}

// argAt returns the position of an argument, counted from the end if index is below 0, or -1 if there
// is no such argument.
func (inv *Invocation) argAt(index int) int {
	if index < 0 {
		index += len(inv.args)
	}
	if index >= len(inv.args) {
		return -1
	}
	return max(index, -1)
}

// ParamValue returns the value attached under a name, or nil if nothing is or the attachment is
// nil. sole is false if there are several; then see [Invocation.ParamValues].
func (inv *Invocation) ParamValue(name string) (v *argument.Value, sole bool) {
	for i := range inv.params {
		if p := &inv.params[i]; p.name == name && !p.value.IsNone() {
			if v != nil {
				return nil, false
			}
			v = &p.value
		}
	}
	return v, true
}

// ParamValues is like [Invocation.ArgValues], but for the values attached under a name.
func (inv *Invocation) ParamValues(name string) []Occurrence {
	inv.valued = true
	inv.values = inv.values[:0]
	inv.addParams(name)
	return inv.values
}

func (inv *Invocation) addParams(name string) {
	for i := range inv.params {
		if p := &inv.params[i]; p.name == name {
			inv.addValue(p.value)
		}
	}
}

// param is an attachment of a call.
type param struct {
	name  string
	value argument.Value
}

func (inv *Invocation) addValues(arg any) {
	argument.Each(arg, inv.addValue)
}

// addValue adds a value, or another occurrence of one. Beyond a few values, a map finds those
// already added.
func (inv *Invocation) addValue(v argument.Value) {
	const few = 16
	switch n := len(inv.values); {
	case v.IsNone():
	case n < few:
		for i := range inv.values {
			if inv.values[i].Value == v {
				inv.values[i].Times++
				return
			}
		}
		inv.values = append(inv.values, Occurrence{v, 1})
	default:
		if n == few {
			inv.places = make(map[argument.Value]int, 2*few)
			for i := range inv.values {
				inv.places[inv.values[i].Value] = i
			}
		}
		if i, ok := inv.places[v]; ok {
			inv.values[i].Times++
			return
		}
		inv.places[v] = n
		inv.values = append(inv.values, Occurrence{v, 1})
	}
}

// forgetValues clears the call's attachments and the values derived from them, so that the pooled
// state keeps no text alive. Storage that grew very large is dropped.
func (inv *Invocation) forgetValues() {
	const most = 64
	for i := len(inv.params) - 1; i >= 0; i-- { // they are few, and clear pays only for many
		inv.params[i] = param{}
	}
	inv.params = inv.params[:0]
	if cap(inv.params) > most {
		inv.params = nil
	}
	if !inv.valued {
		return
	}
	inv.valued = false
	clear(inv.values[:cap(inv.values)])
	inv.values = inv.values[:0]
	if cap(inv.values) > most {
		inv.values = nil
	}
	clear(inv.key[:cap(inv.key)])
	inv.places = nil
}
