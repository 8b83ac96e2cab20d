package engine

import (
	"github.com/penstock-go/penstock/core/argument"
)

// Part is a value of a call that its key has: an attachment, an argument, the caller, or the
// resource.
type Part struct {
	Of    PartKind
	Param string // the name of the attachment
	Arg   int    // the position of the argument
}

// PartKind is a kind of value of a call.
type PartKind uint8

// The kinds.
const (
	PartParam PartKind = iota
	PartArg
	PartOrigin
	PartResource
)

// Key describes keys of several parts.
type Key struct {
	Parts []Part // never changed
	// Fill puts empty text in place of a part that the call doesn't have. Otherwise such a call has
	// no keys.
	Fill bool
	// Known returns the value of a tuple that is already kept somewhere, so that it needs no copy.
	Known func(argument.Tuple) (argument.Value, bool)
}

// KeyValues returns the keys of the call: the combination of its parts or, if a part has several
// values, one for each of them. Of a further part with several values the first counts. A key of one
// part is that part's value. The result belongs to the invocation, as that of
// [Invocation.ArgValues] does.
func (inv *Invocation) KeyValues(k *Key) []Occurrence {
	inv.valued = true
	inv.values = inv.values[:0]
	several := -1
	for i := range k.Parts {
		if inv.mayBeSeveral(&k.Parts[i]) {
			inv.addPart(&k.Parts[i])
			if n := len(inv.values); n > 1 || n == 1 && inv.values[0].Times > 1 {
				several = i
				break
			}
			inv.values = inv.values[:0] // a list of one, or of none
		}
	}
	if several < 0 {
		inv.values = append(inv.values, Occurrence{Times: 1})
	}
	for i := range inv.values {
		if inv.values[i].Value = inv.keyOf(k, several, inv.values[i].Value); inv.values[i].Value.IsNone() {
			return inv.values[:0] // the others have that part in common
		}
	}
	return inv.values
}

// keyOf returns the key with v as the part that has several values, or none if a part is missing.
func (inv *Invocation) keyOf(k *Key, several int, v argument.Value) argument.Value {
	key := inv.key[:0]
	for i := range k.Parts {
		part := v
		if i != several {
			part = inv.Part(&k.Parts[i])
		}
		if part.IsNone() && k.Fill {
			part = argument.Of("")
		}
		if part.IsNone() || len(k.Parts) == 1 {
			return part
		}
		key = key.With(part)
	}
	inv.key = key
	if v, known := k.Known(key); known {
		return v
	}
	return key.Value()
}

// MissingPart returns the first part that the call doesn't have, or -1.
func (inv *Invocation) MissingPart(k *Key) int {
	for i := range k.Parts {
		if v := inv.Part(&k.Parts[i]); v.IsNone() || k.Fill && v.IsEmpty() {
			return i
		}
	}
	return -1
}

// mayBeSeveral reports whether a part may have several values.
func (inv *Invocation) mayBeSeveral(p *Part) bool {
	switch p.Of {
	case PartParam:
		_, sole := inv.ParamValue(p.Param)
		return !sole
	case PartArg:
		i := inv.argAt(p.Arg)
		return i >= 0 && argument.IsList(inv.args[i])
	}
	return false
}

// addPart adds the values of a part that may have several.
func (inv *Invocation) addPart(p *Part) {
	if p.Of == PartArg {
		inv.addValues(inv.args[inv.argAt(p.Arg)])
		return
	}
	inv.addParams(p.Param)
}

// Part returns the value of a part, the first if it has several, or none.
func (inv *Invocation) Part(p *Part) (first argument.Value) {
	switch p.Of {
	case PartOrigin:
		if origin := inv.Origin(); origin != "" {
			first, _ = argument.Scalar(origin) // which lets nothing escape
		}
	case PartResource:
		first, _ = argument.Scalar(inv.Name())
	case PartParam:
		for i := range inv.params {
			if a := &inv.params[i]; a.name == p.Param && !a.value.IsNone() {
				return a.value
			}
		}
	case PartArg:
		i := inv.argAt(p.Arg)
		switch {
		case i < 0:
		case argument.IsList(inv.args[i]):
			argument.Each(inv.args[i], func(v argument.Value) {
				if first.IsNone() {
					first = v
				}
			})
		default:
			return argument.Of(inv.args[i])
		}
	}
	return first
}
