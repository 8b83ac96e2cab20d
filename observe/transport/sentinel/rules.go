package sentinel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/penstock-go/penstock/authority"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/sentinel"
	"github.com/penstock-go/penstock/internal/shown"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/system"
)

// family is a type of rules that a dashboard reads and writes.
type family interface {
	// write returns the rules that Sentinel knows too, as a JSON array.
	write(rules.Set) string
	// push returns mine with its family as sent by a dashboard that was shown all; see merge. mine
	// is part of all.
	push(mine, all, pushed rules.Set) (rules.Set, error)
	// key returns the family's key in a rule file.
	key() string
	// alone returns a set with only the family's rules.
	alone(rules.Set) rules.Set
}

// familyOf is a family with rules R, in Java J.
type familyOf[J javaRule[R], R spec.Rule] struct {
	kind       core.Kind
	in         func(*rules.Set) *[]R
	normalized func(R) (R, error)
	toJava     func(R) J          // translates a rule as well as Java allows
	keep       func(new, old R) R // returns new, with the parts of old that Java can't express
}

func normalFlow(r flow.Rule) (flow.Rule, error) { return r.Normalized(sentinel.JavaColdFactor) }

// hotType is the type of hotspot rules, whose commands have their own names.
const hotType = "paramFlow"

// families holds the families by the type in commands, in lower case.
var families = map[string]family{
	"flow":      flowFamily,
	"degrade":   breakerFamily,
	"system":    systemFamily,
	"authority": authorityFamily,
}

var (
	flowFamily = familyOf[sentinel.JavaFlow, flow.Rule]{
		core.KindFlow, func(s *rules.Set) *[]flow.Rule { return &s.Flow }, normalFlow, javaFlow, keepFlow,
	}
	breakerFamily = familyOf[sentinel.JavaBreaker, breaker.Rule]{
		core.KindBreaker, func(s *rules.Set) *[]breaker.Rule { return &s.Breaker }, breaker.Rule.Normalized, javaBreaker, keepBreaker,
	}
	systemFamily = familyOf[sentinel.JavaSystem, system.Rule]{
		core.KindSystem, func(s *rules.Set) *[]system.Rule { return &s.System }, system.Rule.Normalized, javaSystem, keepSystem,
	}
	authorityFamily = familyOf[sentinel.JavaAuthority, authority.Rule]{
		core.KindAuthority, func(s *rules.Set) *[]authority.Rule { return &s.Authority }, authority.Rule.Normalized, javaAuthority, keepAuthority,
	}
	hotFamily = familyOf[sentinel.JavaHotspot, hotspot.Rule]{
		core.KindHotspot, func(s *rules.Set) *[]hotspot.Rule { return &s.Hotspot }, hotspot.Rule.Normalized, javaHotspot, keepHotspot,
	}
)

func (f familyOf[J, R]) push(mine, all, pushed rules.Set) (rules.Set, error) {
	full, err := spec.Normalize(f.kind, *f.in(&mine), f.normalized)
	if err != nil {
		return mine, err
	}
	places := placesOf(full)
	var others []R
	for _, r := range *f.in(&all) {
		if _, is := places[r.Info().ID]; !is {
			others = append(others, r)
		}
	}
	list, fixed := f.merge(full, others, *f.in(&pushed))
	if fixed != nil {
		return mine, &fixedError{f.kind, (*fixed).Info().ID}
	}
	*f.in(&mine) = f.asWritten(*f.in(&mine), full, list)
	return mine, nil
}

// placesOf returns the indexes of rules by ID.
func placesOf[R spec.Rule](rules []R) map[string]int {
	places := make(map[string]int, len(rules))
	for i := range rules {
		places[rules[i].Info().ID] = i
	}
	return places
}

func (f familyOf[J, R]) key() string { return f.kind.String() }

func (f familyOf[J, R]) alone(set rules.Set) (only rules.Set) {
	*f.in(&only) = *f.in(&set)
	return only
}

// fixedError means that a rule can't be changed here.
type fixedError struct {
	kind core.Kind
	id   string
}

func (e *fixedError) Error() string {
	return fmt.Sprintf("the %v rule %q can't be changed", e.kind, e.id)
}

var errType = badRequest("invalid type")

func familyFor(ask question) (family, string, error) {
	kind := strings.ToLower(ask.Get("type"))
	f := families[kind]
	if f == nil {
		return nil, "", errType
	}
	return f, kind, nil
}

func (h *handler) getRules(ask question) (reply, error) {
	f, _, err := familyFor(ask)
	if err != nil {
		return reply{}, err
	}
	return h.report(f), nil
}

func (h *handler) getParamRules(question) (reply, error) { return h.report(hotFamily), nil }

func (h *handler) report(f family) reply {
	return reply{"application/json; charset=utf-8", []byte(f.write(h.guard.Rules()))}
}

func (h *handler) setRules(ask question) (reply, error) {
	f, kind, err := familyFor(ask)
	if err != nil {
		return reply{}, err
	}
	return h.set(f, kind, ask)
}

func (h *handler) setParamRules(ask question) (reply, error) {
	if strings.TrimSpace(ask.Get("data")) == "" {
		return reply{}, badRequest("Bad data")
	}
	return h.set(hotFamily, hotType, ask)
}

// set replaces the rules of a family with the received ones, all or none.
func (h *handler) set(f family, kind string, ask question) (reply, error) {
	pushed, err := rules.ParseWith(kind+"-rules.json", decoded(ask.Get("data")),
		rules.ParseOptions{Dialect: rules.SentinelJava, Family: kind})
	if err != nil {
		return reply{}, err
	}
	var change rules.Change
	edit := func(mine rules.Set) (rules.Set, error) {
		set, err := f.push(mine, h.guard.Rules(), pushed.Set)
		if fixed, ok := errors.AsType[*fixedError](err); ok {
			return set, fmt.Errorf("the %v rule %q is from %s, which can't be written from here: leave it unchanged", fixed.kind, fixed.id, h.others())
		}
		change = rules.Diff(mine, set)
		return set, err
	}
	where := "memory"
	if h.Store == nil {
		err = h.guard.EditRules(edit)
	} else {
		where = h.Store.Name()
		err = h.write(f, edit)
	}
	log := h.guard.Logger()
	if err != nil {
		log.Warn("penstock: rules from Sentinel's command API rejected", "type", kind, "from", ask.from, "error", shown.Name(err.Error(), maxLogged))
		return reply{}, err
	}
	log.Info("penstock: rules changed by Sentinel's command API", "type", kind, "from", ask.from, "in", where,
		"change", change.String(), "what", joined(change.Lines()))
	pushed.Warn(log)
	return text("success"), nil
}

// The limits on logged text from clients.
const (
	maxLogged    = 400 // columns of a text
	maxSaidLines = 10
)

// joined joins lines into one, up to the limit for logs.
func joined(lines []string) string {
	var few []string
	for _, line := range lines[:min(len(lines), maxSaidLines)] {
		few = append(few, shown.Name(line, maxLogged))
	}
	if more := len(lines) - maxSaidLines; more > 0 {
		few = append(few, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(few, "; ")
}

// decoded returns the list in data: Sentinel decodes it once more than the form requires, and
// clients may rely on that.
func decoded(data string) []byte {
	if !json.Valid([]byte(data)) {
		if again, err := url.QueryUnescape(data); err == nil && json.Valid([]byte(again)) {
			return []byte(again)
		}
	}
	return []byte(data)
}

// others names the sources whose rules can't be written here.
func (h *handler) others() string {
	var names []string
	for _, s := range h.guard.Status().Sources {
		if s.Source != "code" && (h.Store == nil || s.Source != h.Store.Name()) {
			names = append(names, s.Source)
		}
	}
	if len(names) == 0 {
		return "another source"
	}
	return strings.Join(names, ", ")
}

const storeTimeout = 5 * time.Second

// write edits the document of the store. Only the rules of the family change.
func (h *handler) write(f family, edit func(rules.Set) (rules.Set, error)) error {
	ctx, done := context.WithTimeout(context.Background(), storeTimeout)
	defer done()
	var mine rules.Set
	doc, err := h.Store.Next(ctx, "")
	switch {
	case err == nil:
		parsed, err := rules.ParseWith(h.Store.Name(), doc.Data, rules.ParseOptions{})
		if err != nil {
			return err
		}
		if parsed.Dialect != rules.Native {
			return fmt.Errorf("%s has rules in the format of %v: convert it to the native format first", h.Store.Name(), parsed.Dialect)
		}
		mine = parsed.Set
	case !errors.Is(err, rules.ErrNotFound):
		return err
	}
	set, err := edit(mine)
	if err != nil {
		return err
	}
	text, err := rewritten(h.Store.Name(), doc.Data, f, set)
	if err != nil {
		return err
	}
	_, err = h.Store.Write(ctx, text, doc.Revision)
	return err
}
