package sentinel

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/sentinel"
	"github.com/penstock-go/penstock/rules"
)

// javaRule is a rule as Java has it.
type javaRule[R any] interface {
	Check() error
	Native() ([]R, []sentinel.Warning, error)
}

// object returns a rule as a JSON object; false if Java has no such rule.
//
// A rule is written only if Java's rule, read again, is the same rule except for what Java can't
// express and what doesn't otherwise change which calls it refuses: its id, how its window is
// divided, how many probes a breaker sends. A rule that says more than Java can is not written at
// all. So what is shown is true, and sending it back unchanged changes nothing, see merge.
func (f familyOf[J, R]) object(r R) (object string, ok bool) {
	full, err := f.normalized(r)
	if err != nil || full.Info().Default() { // to Java "*" is a name
		return "", false
	}
	said := f.said(full)
	read, _, err := said.Native()
	if err != nil || said.Check() != nil || len(read) != 1 {
		return "", false
	}
	again, err := f.normalized(f.keep(read[0], full))
	if err != nil || !spec.Equal(again, full) {
		return "", false
	}
	return javaObject(said), true
}

// write returns the rules that Sentinel has too, as a JSON array.
func (f familyOf[J, R]) write(set rules.Set) string {
	all := []string{}
	for _, r := range *f.in(&set) {
		if object, ok := f.object(r); ok {
			all = append(all, object)
		}
	}
	return "[" + strings.Join(all, ",") + "]"
}

// merge returns the new version of the rules mine after a client that was shown them, and others,
// has sent back a list. A rule that comes back as shown is unchanged. A rule that was changed keeps
// its id and what Java can't express. Rules that were not shown stay, rules that don't come back
// are removed, and the rest are new. mine and others have their defaults and ids written out.
//
// The others can't be changed. The first one that is missing, or is not what it was, is returned:
// there is no push then.
func (f familyOf[J, R]) merge(mine, others, pushed []R) (rules []R, refused *R) {
	came := make(map[string][]int) // by how Java says it: places in pushed
	for i, p := range pushed {
		object, ok := f.object(p)
		if !ok { // which reads otherwise than it is written, as a breaker that never opens
			object = strconv.Itoa(i)
		}
		came[object] = append(came[object], i)
	}
	taken := make([]bool, len(pushed))
	claim := func(object string) bool {
		at := came[object]
		if len(at) == 0 {
			return false
		}
		taken[at[0]], came[object] = true, at[1:]
		return true
	}
	for i := range others {
		if object, shown := f.object(others[i]); shown && !claim(object) {
			return nil, &others[i]
		}
	}
	var changed []int // places in rules, of those that may have been changed
	gone := make(map[int]bool)
	for _, m := range mine {
		if object, shown := f.object(m); shown && !claim(object) {
			changed = append(changed, len(rules))
			gone[len(rules)] = true
		}
		rules = append(rules, m)
	}
	like := make(map[string][]int, len(changed)) // those that are gone
	for _, at := range changed {
		like[rules[at].Like()] = append(like[rules[at].Like()], at)
	}
	for i, p := range pushed {
		if taken[i] {
			continue
		}
		full, err := f.normalized(p)
		if err != nil || len(like[full.Like()]) == 0 {
			rules = append(rules, p)
			continue
		}
		at := like[full.Like()][0]
		like[full.Like()] = like[full.Like()][1:]
		gone[at] = false
		if kept := f.keep(full, rules[at]); f.valid(kept) {
			rules[at] = kept
		} else {
			rules[at] = spec.WithID(p, rules[at].Info().ID)
		}
	}
	left := rules[:0:0]
	for i, r := range rules {
		if !gone[i] {
			left = append(left, r)
		}
	}
	return left, nil
}

func (f familyOf[J, R]) valid(r R) bool {
	_, err := f.normalized(r)
	return err == nil
}

// javaObject is a rule of Java's as its JSON has it. It is without an id: to Sentinel's dashboard
// that is a number, and one of its own.
func javaObject(rule any) string {
	var b bytes.Buffer
	v := reflect.ValueOf(rule)
	for i := range v.NumField() {
		key, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
		f := v.Field(i)
		if key == "" || key == "id" || f.Kind() == reflect.Struct || f.Kind() == reflect.Pointer {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Quote(key) + ":")
		if f.Kind() == reflect.Slice {
			b.WriteByte('[')
			for j := range f.Len() {
				if j > 0 {
					b.WriteByte(',')
				}
				b.WriteString(javaObject(f.Index(j).Interface()))
			}
			b.WriteByte(']')
			continue
		}
		text, _ := json.Marshal(f.Interface()) // a scalar, and finite since its rule is valid
		b.Write(text)
	}
	return "{" + b.String() + "}"
}
