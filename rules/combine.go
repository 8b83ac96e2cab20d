package rules

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/penstock-go/penstock/core/spec"
)

// content is the content of a source at one time. It does not change.
type content struct {
	parsed Parsed
	places places
	hash   hash

	// named holds the rules with their IDs in the source written out. So they keep their IDs when
	// combined with other sources: the number on a generated ID distinguishes rules within one
	// source, and no source renumbers rules of another. They are computed on first use, under the
	// lock of the Loader.
	named   *Set
	invalid error // why naming them failed, which no file does
}

// name computes the named rules, unless they exist.
func (c *content) name() *Set {
	if c.named == nil {
		c.named = new(Set)
		for _, f := range families {
			if err := f.name(&c.parsed.Set, c.named); err != nil {
				c.invalid = errors.Join(c.invalid, err)
			}
		}
	}
	return c.named
}

// contentOf returns the content of rules that come from code.
func contentOf(set Set) *content {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%#v", set) // a hash accepts everything
	return &content{parsed: Parsed{Set: set, Dialect: Native}, hash: hash(h.Sum(nil))}
}

// name puts the rules of s into named, with their IDs written out if they are valid.
func (f rulesOf[R]) name(s, named *Set) error {
	rules := slices.Clone(*f.in(s))
	norms, err := spec.Normalize(f, rules, f.normalized)
	for i, norm := range norms {
		rules[i] = spec.WithID(rules[i], norm.Info().ID)
	}
	*f.in(named) = rules
	return err
}

// contribution is the contribution of a piece to a combination: none without a content.
type contribution struct {
	piece   *piece
	content *content
}

// rule returns the position of a rule of the piece, and its path there.
func (s contribution) rule(family string, i int) (at place, path string) {
	if all := s.content.places[family]; i < len(all) {
		return all[i].at, all[i].path
	}
	return place{}, fmt.Sprintf("%s[%d]", family, i)
}

// Override reports a rule that is not in force because a later source has one with the same ID; see
// [Loader.AllowOverrides].
type Override struct {
	Family string // its key in the file, as in "flow"
	ID     string
	Source string // of the overridden rule
	By     string // the source whose rule is in force instead
}

// String returns the override in one line.
func (o Override) String() string {
	return fmt.Sprintf("%s %s of %s, by %s", o.Family, quoted(o.ID), o.Source, o.By)
}

// conflict is an ID that two pieces have.
type conflict struct {
	family         string
	id             string
	earlier, later ref
}

// ref identifies a rule by its piece and its index within that piece.
type ref struct{ piece, rule int }

// combination is the result of combining pieces.
type combination struct {
	pieces    []contribution
	laterWins bool
	set       Set
	conflicts []conflict
	overrides []Override
}

// combine returns one Set of all pieces, in their order. If two pieces have rules with the same ID,
// the earlier rule is left out if the later one wins; otherwise it is a conflict. The rules of a
// single piece are unchanged.
func combine(pieces []contribution, laterWins bool) combination {
	c := combination{pieces: pieces, laterWins: laterWins}
	var sole *content
	contents := 0
	for _, p := range pieces {
		if p.content != nil {
			sole = p.content
			contents++
		}
	}
	if contents == 1 {
		c.set = sole.parsed.Set
		return c
	}
	for _, f := range families {
		f.combine(&c)
	}
	return c
}

func (f rulesOf[R]) combine(c *combination) {
	total := 0
	for _, p := range c.pieces {
		if p.content != nil {
			total += f.count(p.content.name())
		}
	}
	if total == 0 {
		return
	}
	of := make(map[string]ref, total) // by ID: the last so far
	beaten := make(map[ref]bool)
	for i, p := range c.pieces {
		if p.content == nil {
			continue
		}
		for j, rule := range *f.in(p.content.name()) {
			id, here := rule.Info().ID, ref{i, j}
			earlier, met := of[id]
			switch of[id] = here; {
			case !met, earlier.piece == i: // only invalid rules have it, and the engine will report them
			case c.laterWins:
				beaten[earlier] = true
				c.overrides = append(c.overrides, Override{f.key(), id, c.pieces[earlier.piece].piece.name, p.piece.name})
			default:
				c.conflicts = append(c.conflicts, conflict{f.key(), id, earlier, here})
			}
		}
	}
	all := make([]R, 0, total)
	for i, p := range c.pieces {
		if p.content == nil {
			continue
		}
		for j, rule := range *f.in(p.content.name()) {
			if !beaten[ref{i, j}] {
				all = append(all, rule)
			}
		}
	}
	*f.in(&c.set) = all
}

// errorsFor returns the conflicts as joined errors for each piece to blame, worded for that piece and
// limited in number.
func (c *combination) errorsFor(blamed map[*piece]bool) map[*piece]error {
	found := make(map[*piece]*faults)
	report := func(mine, other ref, x conflict) {
		me, they := c.pieces[mine.piece], c.pieces[other.piece]
		if !blamed[me.piece] {
			return
		}
		f := found[me.piece]
		if f == nil {
			f = &faults{file: me.piece.name}
			found[me.piece] = f
		}
		at, path := me.rule(x.family, mine.rule)
		there, name := they.rule(x.family, other.rule)
		where := they.piece.name
		if there != (place{}) {
			where += ":" + there.String()
		}
		f.add(at, path, "the id %q is also that of %s in %s: give each its own, remove one, or declare that the later source wins",
			clip(x.id), name, where)
	}
	for _, x := range c.conflicts {
		report(x.later, x.earlier, x)
		report(x.earlier, x.later, x)
	}
	errs := make(map[*piece]error, len(found))
	for p, f := range found {
		errs[p] = f.err()
	}
	return errs
}
