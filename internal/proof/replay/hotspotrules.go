package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/internal/sentinel"
)

// JavaHotspotRule is a parameter flow rule of Java Sentinel, with names for its numbers.
type JavaHotspotRule struct {
	ID                string     `json:"id"`
	Resource          string     `json:"resource"`
	ParamIndex        int        `json:"paramIndex"`
	Grade             string     `json:"grade"` // qps (default) or concurrency
	Count             float64    `json:"count"`
	ControlBehavior   string     `json:"controlBehavior"` // reject (default) or throttle
	DurationSec       *int64     `json:"durationSec"`     // 1 if absent
	BurstCount        int        `json:"burstCount"`
	MaxQueueingTimeMs int64      `json:"maxQueueingTimeMs"`
	Items             []JavaItem `json:"items"`
}

// JavaItem is a value with its own limit.
type JavaItem struct {
	Value json.RawMessage `json:"value"`
	Count float64         `json:"count"`
}

// TranslateHotspot returns native rules that behave like the Java ones, in their order.
func TranslateHotspot(rules []JavaHotspotRule) (native []hotspot.Rule, dropped []Dropped, err error) {
	for _, r := range rules {
		rule, err := r.java()
		if err != nil {
			return nil, nil, err
		}
		if err := rule.Check(); err != nil {
			dropped = append(dropped, Dropped{r.ID, true, err.Error()})
			continue
		}
		n, _, err := rule.Native()
		if err != nil {
			return nil, nil, err
		}
		full, err := n[0].Normalized()
		if err != nil {
			return nil, nil, err
		}
		native = append(native, full)
	}
	return native, dropped, nil
}

func (r JavaHotspotRule) seconds() int64 { return int64(orElse(r.DurationSec, 1)) }

// javaTypes are Java's names for the types of arguments. It treats others as text.
var javaTypes = map[string]string{"int64": "long", "float64": "double", "bool": "boolean"}

// java returns the rule in the form of Java's rule files.
func (r JavaHotspotRule) java() (rule sentinel.JavaHotspot, err error) {
	unset := sentinel.JavaHotspotUnset
	rule = sentinel.JavaHotspot{
		ID: sentinel.ID(r.ID), Resource: r.Resource, ParamIdx: r.ParamIndex, Count: r.Count, BurstCount: r.BurstCount,
		Grade:             number(grades, r.Grade, unset.Grade),
		ControlBehavior:   number(behaviors, r.ControlBehavior, unset.ControlBehavior),
		DurationInSec:     orElse(r.DurationSec, unset.DurationInSec),
		MaxQueueingTimeMs: int(r.MaxQueueingTimeMs),
	}
	for _, item := range r.Items {
		v, err := argumentOf(item.Value)
		if err != nil {
			return rule, err
		}
		rule.ParamFlowItemList = append(rule.ParamFlowItemList, sentinel.JavaItem{
			Object: sentinel.Text(fmt.Sprint(v)), ClassType: javaTypes[fmt.Sprintf("%T", v)], Count: int(item.Count),
		})
	}
	return rule, nil
}

// argumentOf returns an argument of a call: text, a whole number, a decimal one, a boolean, nil, or
// a list of these.
func argumentOf(raw json.RawMessage) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return nil, err
	}
	return typed(v)
}

func typed(v any) (any, error) {
	switch v := v.(type) {
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			return v.Float64()
		}
		return v.Int64()
	case []any:
		for i := range v {
			var err error
			if v[i], err = typed(v[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		return nil, fmt.Errorf("an argument can't be an object")
	}
	return v, nil
}

// elements returns the values of an argument, one after the other, and whether it is a list.
func elements(arg any) (values []argument.Value, list bool) {
	all, list := arg.([]any)
	if !list {
		all = []any{arg}
	}
	for _, v := range all {
		values = append(values, argument.Of(v))
	}
	return slices.DeleteFunc(values, argument.Value.IsNone), list
}
