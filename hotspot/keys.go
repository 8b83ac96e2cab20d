package hotspot

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
)

// checkKeys refuses keys that can't be.
func (r Rule) checkKeys() error {
	switch {
	case r.Index.given || r.Param != "":
		return spec.BadField("keys", `does not go with index or param: name the argument there as well, as in "arg 0" or "param tenant", and remove the other field`)
	case len(r.Keys) > MaxKeys:
		return spec.BadField("keys", "has %d parts: a key can have at most %d", len(r.Keys), MaxKeys)
	case len(r.Keys) == 1 && r.Keys[0] == partResource:
		return spec.BadField("keys", "has only the resource, which has its own limits in any case: add another part, or use a flow rule")
	}
	for i, text := range r.Keys {
		if j := slices.Index(r.Keys, text); j < i {
			return spec.BadField("keys", "has %.60q twice: remove one", text)
		}
		part, ok := parsePart(text)
		switch {
		case !ok:
			return spec.BadField("keys", `has %.60q: use "param" and the name of an attachment, as in "param tenant", "arg" and the position of an argument, as in "arg 0", "origin" or "resource"`, text)
		case part.Arg < -MaxIndex || part.Arg > MaxIndex:
			return spec.BadField("keys", "has %q: use arg 0 for the first argument, arg -1 for the last, at most arg %d", text, MaxIndex)
		}
		if err := spec.CheckName("keys", part.Param); err != nil {
			return err
		}
	}
	return nil
}

const (
	partArg      = "arg "
	partResource = "resource"
)

// parsePart reads a part as it is written in a rule.
func parsePart(text string) (p engine.Part, ok bool) {
	if name, param := strings.CutPrefix(text, spec.ParamPrefix); param {
		return engine.Part{Param: name}, name != "" && strings.TrimSpace(name) == name
	}
	if number, arg := strings.CutPrefix(text, partArg); arg {
		n, err := strconv.Atoi(number)
		return engine.Part{Of: engine.PartArg, Arg: n}, err == nil && strconv.Itoa(n) == number
	}
	switch text {
	case spec.Origin:
		return engine.Part{Of: engine.PartOrigin}, true
	case partResource:
		return engine.Part{Of: engine.PartResource}, true
	}
	return p, false
}

// parts returns the parts of the rule's values: one, unless it has several keys.
func (r *Rule) parts() (all []engine.Part) {
	switch {
	case r.Index.given:
		return []engine.Part{{Of: engine.PartArg, Arg: r.Index.at}}
	case len(r.Keys) == 0:
		return []engine.Part{{Param: r.Param}}
	}
	for _, text := range r.Keys {
		p, _ := parsePart(text)
		all = append(all, p)
	}
	return all
}

// source identifies the parts in an ID: index and param as they have always been, and a key of one
// part like these.
func (r Rule) source() string {
	parts := r.parts()
	switch p := parts[0]; {
	case len(parts) > 1 || p.Of == engine.PartOrigin:
		texts := slices.Clone(r.Keys)
		for i, text := range texts {
			if strings.Contains(text, ",") {
				texts[i] = strconv.Quote(text)
			}
		}
		return "keys=" + strings.Join(texts, ",")
	case p.Of == engine.PartArg:
		return fmt.Sprintf("index=%d", p.Arg)
	default:
		return "param=" + p.Param
	}
}

// checkNamed refuses exceptions that name no value, or not one of the rule's.
func (r Rule) checkNamed(i int, x Exception) error {
	switch n := len(r.Keys); {
	case n < 2 && x.Values != nil:
		return spec.BadField("exceptions", "entry %d has values, but the rule's values have one part: use value", i)
	case n > 1 && !x.Value.IsNone():
		return spec.BadField("exceptions", "entry %d has a value, but the rule's keys have %d parts: use values, with one for each part", i, n)
	case n > 1 && len(x.Values) != n:
		return spec.BadField("exceptions", `entry %d has %d values, but the rule's keys have %d parts: give one for each, "*" for any value`, i, len(x.Values), n)
	}
	v, stars := x.key()
	for j, part := range v.Parts() {
		if part.Scalar() == nil && stars>>j&1 == 0 {
			return spec.BadField("exceptions", "entry %d has no valid value: use a string of at most %d bytes, a finite number, true or false", i, argument.MaxText)
		}
	}
	if len(x.Values) > 0 && bits.OnesCount(stars) == len(x.Values) {
		return spec.BadField("exceptions", "entry %d is about all keys: set the rule's threshold instead", i)
	}
	return nil
}

// anyValue stands for any value of a part.
var anyValue = argument.Of("*")

// key returns the value that an exception names. Parts that may have any value are none in it, and
// are in the set of stars, the first part in the lowest bit.
func (x Exception) key() (v argument.Value, stars uint) {
	if len(x.Values) == 0 {
		return x.Value, 0
	}
	var t argument.Tuple
	for i, part := range x.Values {
		if part == anyValue {
			part = argument.Value{}
			stars |= 1 << i
		}
		t = t.With(part)
	}
	return t.Value(), stars
}

// starred are the exceptions with stars for the same parts.
type starred struct {
	named  uint // the other parts
	quotas map[string]*quota
}

// star adds an exception with stars. The one with the fewest stars comes first, and of those with as
// many, the one that names the first part in which they differ.
func (c *controller) star(x Exception, q *quota) {
	c.mixed = true
	v, stars := x.key()
	named := 1<<len(x.Values) - 1 - stars
	i, ok := slices.BinarySearchFunc(c.starred, named, func(s starred, named uint) int {
		return cmp.Or(bits.OnesCount(named)-bits.OnesCount(s.named), cmp.Compare(bits.Reverse(named), bits.Reverse(s.named)))
	})
	if !ok {
		c.starred = slices.Insert(c.starred, i, starred{named, make(map[string]*quota)})
	}
	q.stars = v.Key()
	c.starred[i].quotas[string(argument.Tuple(nil).WithParts(v, named))] = q
	c.restQuota.unit = c.restQuota.unit.Later(q.unit)
}

// starredQuota returns the limit of the exception whose stars match a key, or nil.
func (c *controller) starredQuota(v argument.Value) *quota {
	var space [4 * (argument.MaxText + 10)]byte // enough for a key of MaxKeys parts
	for i := range c.starred {
		s := &c.starred[i]
		if q, ok := s.quotas[string(argument.Tuple(space[:0]).WithParts(v, s.named))]; ok {
			return q
		}
	}
	return nil
}

// known returns the key of a cell that has these parts.
func (c *controller) known(t argument.Tuple) (v argument.Value, ok bool) {
	hash := t.Hash()
	s := c.values.shard(hash)
	if h := s.hot.Load(); h != nil && h.hash == hash && t.Is(h.value) {
		return h.value, true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.cells.findTuple(t, hash)
	if x == nil {
		return v, false
	}
	return x.value, true
}

// describe describes a part in words.
func describe(p engine.Part) string {
	switch p.Of {
	case engine.PartOrigin:
		return "origin"
	case engine.PartResource:
		return "resource"
	case engine.PartArg:
		return fmt.Sprintf("argument %d", p.Arg)
	}
	return fmt.Sprintf("value for %q", p.Param)
}
