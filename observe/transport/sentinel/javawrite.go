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

// javaRule is a rule of Sentinel for Java.
type javaRule[R any] interface {
	Check() error
	Native() ([]R, []sentinel.Warning, error)
}

// object returns a rule as a JSON object, or false if Java has no such rule.
//
// A rule is written only if Java's rule, read again, equals it except for parts that Java can't
// express and that don't change which calls it refuses: its id, the buckets of its window, a
// breaker's number of probes. A rule with other parts that Java can't express is not written. So
// the output is accurate, and sending it back unchanged changes nothing; see merge.
func (f familyOf[J, R]) object(r R) (object string, ok bool) {
	full, err := f.normalized(r)
	if err != nil || full.Info().Default() { // in Java "*" is a name
		return "", false
	}
	form := f.toJava(full)
	read, _, err := form.Native()
	if err != nil || form.Check() != nil || len(read) != 1 {
		return "", false
	}
	again, err := f.normalized(f.keep(read[0], full))
	if err != nil || !spec.Equal(again, full) {
		return "", false
	}
	return javaObject(form), true
}

// write returns the rules that Sentinel knows too, as a JSON array.
func (f familyOf[J, R]) write(set rules.Set) string {
	all := []string{}
	for _, r := range *f.in(&set) {
		if object, ok := f.object(r); ok {
			all = append(all, object)
		}
	}
	return "[" + strings.Join(all, ",") + "]"
}

// merge returns the new version of the rules mine after a client, which was shown mine and others,
// has sent a list. A rule sent as shown is unchanged. A changed rule keeps its id and the parts that
// Java can't express. Rules that were not shown stay, shown rules that were not sent are removed, and
// the remaining rules are new. mine and others have their defaults and ids filled in.
//
// The client can't change others. If one of them is missing or changed, merge returns the first such
// rule and no new version.
func (f familyOf[J, R]) merge(mine, others, pushed []R) (rules []R, refused *R) {
	came := make(map[string][]int) // indexes in pushed, by Java's form of the rule
	for i, p := range pushed {
		object, ok := f.object(p)
		if !ok { // it reads back differently, such as a breaker that never opens
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
	var changed []int // indexes in rules that may have been changed
	gone := make(map[int]bool)
	for _, m := range mine {
		if object, shown := f.object(m); shown && !claim(object) {
			changed = append(changed, len(rules))
			gone[len(rules)] = true
		}
		rules = append(rules, m)
	}
	like := make(map[string][]int, len(changed)) // rules that were not sent
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

// javaObject returns a rule as Java's JSON. It has no id: Sentinel's dashboard assigns its own
// numbers.
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
