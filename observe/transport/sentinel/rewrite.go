package sentinel

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/rules"
)

// asWritten returns a saved list with rules in their original form: an unchanged rule is taken from
// mine, without defaults and without a generated id, and a changed rule keeps the unchanged fields in
// that form. full is mine with defaults and ids.
func (f familyOf[J, R]) asWritten(mine, full, list []R) []R {
	lean, places := slices.Clone(list), placesOf(full)
	for i, r := range list {
		at, is := places[r.Info().ID]
		if !is {
			continue // a new rule
		}
		if one := leaner(mine[at], full[at], r); f.same(one, r, full[at].Info().ID) {
			lean[i] = one
		}
	}
	// Generated ids number equal rules by their order, which may have changed.
	if again, err := spec.Normalize(f.kind, lean, f.normalized); err == nil && slices.EqualFunc(again, list, func(a, b R) bool {
		return b.Info().ID == "" || a.Info().ID == b.Info().ID
	}) {
		return lean
	}
	return list
}

// same reports whether two rules are equal, once they have their defaults and the id.
func (f familyOf[J, R]) same(a, b R, id string) bool {
	x, err := f.normalized(spec.WithID(a, id))
	if err != nil {
		return false
	}
	y, err := f.normalized(spec.WithID(b, id))
	return err == nil && spec.Equal(x, y)
}

// leaner returns now, with the written form of the fields that are unchanged from full.
func leaner[R any](written, full, now R) R {
	w, f, n := reflect.ValueOf(written), reflect.ValueOf(full), reflect.ValueOf(&now).Elem()
	for i := range n.NumField() {
		if n.Field(i).CanSet() && reflect.DeepEqual(n.Field(i).Interface(), f.Field(i).Interface()) {
			n.Field(i).Set(w.Field(i))
		}
	}
	return now
}

// rewritten returns a document with the rules of one family replaced by those in set, which has all
// rules. The remainder of the document keeps its comments and order if it has the families as keys at
// the beginning of lines or is JSON. Otherwise the whole document is written anew.
func rewritten(name string, doc []byte, f family, set rules.Set) ([]byte, error) {
	isJSON := strings.HasSuffix(name, ".json")
	anew, err := set.YAML()
	if isJSON {
		anew, err = set.MarshalJSON()
	}
	if err != nil || len(bytes.TrimSpace(doc)) == 0 {
		return anew, err
	}
	var edited []byte
	if isJSON {
		edited = editedJSON(doc, f, set)
	} else {
		edited = editedYAML(doc, f, set)
	}
	read, err := rules.ParseWith(name, edited, rules.ParseOptions{})
	if err != nil || read.Dialect != rules.Native || !rules.Diff(read.Set, set).Empty() {
		return anew, nil
	}
	return edited, nil
}

var topKey = regexp.MustCompile(`^["']?([A-Za-z]+)["']?\s*:`)

// section holds the lines of a key and the comments before it.
type section struct{ key, text string }

func sectionsOf(doc []byte) (all []section) {
	for line := range strings.Lines(string(doc)) {
		if m := topKey.FindStringSubmatch(line); m != nil {
			lead := ""
			if n := len(all); n > 0 {
				all[n-1].text, lead = withoutLead(all[n-1].text)
			}
			all = append(all, section{m[1], lead + line})
			continue
		}
		if len(all) == 0 {
			all = append(all, section{})
		}
		all[len(all)-1].text += line
	}
	return all
}

// withoutLead splits off the comments and blank lines at the end of a text, since they belong to the
// next section.
func withoutLead(text string) (rest, lead string) {
	lines := slices.Collect(strings.Lines(text))
	n := len(lines)
	for n > 0 && (strings.TrimSpace(lines[n-1]) == "" || lines[n-1][0] == '#') {
		n--
	}
	return strings.Join(lines[:n], ""), strings.Join(lines[n:], "")
}

func editedYAML(doc []byte, f family, set rules.Set) []byte {
	alone := f.alone(set)
	text := ""
	if alone.Len() > 0 {
		made, err := alone.YAML()
		if err != nil {
			return nil
		}
		text = string(made)
	}
	var out strings.Builder
	found := false
	for _, s := range sectionsOf(doc) {
		if s.key == f.key() {
			found = true
			_, lead := withoutLead(firstLines(s.text))
			s.text = lead + text
		}
		out.WriteString(s.text)
	}
	if !found {
		if text != "" && out.Len() > 0 && !strings.HasSuffix(out.String(), "\n") {
			out.WriteByte('\n')
		}
		out.WriteString(text)
	}
	return []byte(out.String())
}

// firstLines returns the lines before the key of a section.
func firstLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if topKey.MatchString(line) {
			break
		}
		b.WriteString(line)
	}
	return b.String()
}

func editedJSON(doc []byte, f family, set rules.Set) []byte {
	alone := f.alone(set)
	var list json.RawMessage
	if alone.Len() > 0 {
		text, err := alone.MarshalJSON()
		var one map[string]json.RawMessage
		if err != nil || json.Unmarshal(text, &one) != nil {
			return nil
		}
		list = one[f.key()]
	}
	in := json.NewDecoder(bytes.NewReader(doc))
	if _, err := in.Token(); err != nil {
		return nil
	}
	var parts []string
	add := func(key string, value json.RawMessage) {
		if value != nil {
			parts = append(parts, fmt.Sprintf("  %q: %s", key, value))
		}
	}
	found := false
	for in.More() {
		key, err := in.Token()
		name, ok := key.(string)
		var value json.RawMessage
		if err != nil || !ok || in.Decode(&value) != nil {
			return nil
		}
		if name == f.key() {
			found, value = true, list
		}
		add(name, value)
	}
	if !found {
		add(f.key(), list)
	}
	return []byte("{\n" + strings.Join(parts, ",\n") + "\n}\n")
}
