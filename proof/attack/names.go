package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/rules"
)

// names gives rules and calls names that are made to break what is written about them:
// rule files, JSON and the tree; and numbers and expressions of the kind. What can't be shown is
// refused when it comes; everything else is shown as it is, or escaped, and read back as it was.
func names(r *round) error {
	for _, part := range []func(*round) error{namesInRules, namesInTree, numbersInFiles, expressions} {
		if err := part(r); err != nil {
			return err
		}
	}
	return nil
}

// namesInRules loads rules with such names, and reads what is written of them.
func namesInRules(r *round) error {
	g, _ := r.guard(api.Config{})
	set := drawSet(r, 2)
	rename := func(id, resource *string, match spec.Match) {
		*id += hostileName(r, 200)
		if match == spec.MatchExact {
			*resource = hostileName(r, 200)
		}
	}
	for i := range set.Flow {
		rule := &set.Flow[i]
		rename(&rule.ID, &rule.Resource, rule.Match)
		if rule.Ref != "" {
			rule.Ref = hostileName(r, 100)
		}
		if r.one(3) {
			rule.Origin = hostileName(r, 100)
		}
	}
	for i := range set.Authority {
		rule := &set.Authority[i]
		rename(&rule.ID, &rule.Resource, rule.Match)
		rule.Origins = append(rule.Origins, hostileName(r, 100))
	}
	for i := range set.Hotspot {
		rule := &set.Hotspot[i]
		rename(&rule.ID, &rule.Resource, rule.Match)
		if len(rule.Exceptions) > 0 {
			rule.Exceptions[0].Value = argument.Of(hostileName(r, argument.MaxText))
		}
	}
	for i := range set.Breaker {
		set.Breaker[i].ID = hostileName(r, 100) + strconv.Itoa(i)
	}
	r.offered.Add(int64(set.Len()))
	r.step("rules: %q", say(set))
	if err := g.LoadRules(set); err != nil {
		if text := err.Error(); !utf8.ValidString(text) || strings.ContainsFunc(text, dangerous) {
			return fmt.Errorf("the refusal of rules holds what a terminal obeys: %q", text)
		}
		return nil
	}
	said := say(g.Rules())
	for _, path := range []string{"/rules", "/rules?format=json"} {
		r.checked.Add(1)
		body, err := fetch(g, path)
		if err != nil {
			return fmt.Errorf("%w: %q", err, said)
		}
		back, err := rules.Parse("", body)
		if err != nil {
			return fmt.Errorf("%s can't be read back: %w\n%q", path, err, body)
		}
		if say(back) != said {
			return fmt.Errorf("%s reads back as %q, and was %q", path, say(back), said)
		}
		if strings.HasSuffix(path, "json") && !json.Valid(body) {
			return fmt.Errorf("%s is no JSON: %q", path, body)
		}
		for line := range strings.Lines(string(body)) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			if (key == "resource" || key == "ref") && slices.Contains(noText, value) {
				return fmt.Errorf("%s writes %q, which is no text", path, strings.TrimSpace(line))
			}
		}
	}
	return nil
}

// dangerous is what must not reach a terminal or a log as it is.
func dangerous(c rune) bool {
	return unicode.IsControl(c) && c != '\n' && c != '\t' || unicode.In(c, unicode.Cf, unicode.Zl, unicode.Zp)
}

// namesInTree makes calls of such names, and reads the tree in every form.
func namesInTree(r *round) error {
	g, _ := r.guard(api.Config{Caps: node.Caps{Resources: pick(r, 0, 5), Contexts: pick(r, 0, 5), Origins: pick(r, 0, 5)}})
	for range 20 {
		r.offered.Add(1)
		name := hostileName(r, pick(r, 100, 1024, 1<<20))
		e, err := g.Entry(from(r.ctx, hostileName(r, 300), hostileName(r, 300)), name)
		e.Exit()
		r.checked.Add(1)
		switch {
		case len(name) > maxName && !errors.Is(err, core.ErrInvalid):
			return fmt.Errorf("a name of %d bytes is taken: %s", len(name), fmt.Sprint(err))
		case len(name) <= maxName && err != nil:
			return fmt.Errorf("a name of %d bytes, without rules: %w", len(name), err)
		}
	}
	for _, path := range []string{"/tree", "/tree?format=json", "/tree?format=sentinel", "/nodes", "/nodes?id=%3C%3C"} {
		r.checked.Add(1)
		body, err := fetch(g, path)
		switch {
		case err != nil:
			return err
		case !utf8.Valid(body):
			return fmt.Errorf("%s is not UTF-8: %q", path, body)
		case (strings.HasSuffix(path, "json") || strings.HasPrefix(path, "/nodes")) && !json.Valid(body):
			return fmt.Errorf("%s is no JSON: %q", path, body)
		case strings.HasPrefix(path, "/tree") && !strings.HasSuffix(path, "json") && bytes.ContainsFunc(bytes.ReplaceAll(body, []byte("\r\n"), nil), dangerous):
			return fmt.Errorf("%s holds what a terminal obeys: %q", path, body)
		}
	}
	return nil
}

// maxName is the longest name of a resource, in bytes.
const maxName = 1024
