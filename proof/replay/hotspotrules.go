package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/core/argument"
	"github.com/penstock-go/penstock/hotspot"
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

// JavaItem is a value with a limit of its own.
type JavaItem struct {
	Value json.RawMessage `json:"value"`
	Count float64         `json:"count"`
}

// TranslateHotspot gives the native rules that behave as the Java ones do, in their
// order. To Java every threshold is a whole number.
func TranslateHotspot(rules []JavaHotspotRule) (native []hotspot.Rule, dropped []Dropped, err error) {
	for _, r := range rules {
		if reason := r.invalid(); reason != "" {
			dropped = append(dropped, Dropped{r.ID, true, reason})
			continue
		}
		n, err := r.native()
		if err != nil {
			return nil, nil, err
		}
		native = append(native, n)
	}
	return native, dropped, nil
}

func (r JavaHotspotRule) invalid() string {
	switch {
	case strings.TrimSpace(r.Resource) == "":
		return "has no resource"
	case !(r.Count >= 0):
		return "has a negative count"
	case r.BurstCount < 0:
		return "has a negative burst"
	case r.seconds() <= 0:
		return "has no duration"
	}
	return ""
}

func (r JavaHotspotRule) seconds() int64 {
	if r.DurationSec == nil {
		return 1
	}
	return *r.DurationSec
}

func (r JavaHotspotRule) native() (hotspot.Rule, error) {
	n := hotspot.Rule{
		ID: r.ID, Resource: r.Resource, Index: hotspot.At(r.ParamIndex), Threshold: float64(int64(r.Count)),
	}
	if r.Grade != "concurrency" {
		n.Interval = time.Duration(r.seconds()) * time.Second
	}
	switch {
	case r.Grade == "concurrency":
		n.Metric = hotspot.Concurrency
	case r.ControlBehavior == "throttle":
		n.Behavior = hotspot.Throttle
		n.MaxWait = max(1, time.Duration(r.MaxQueueingTimeMs)*time.Millisecond) // 0 would be the default
	default:
		n.Burst = r.BurstCount
	}
	for _, item := range r.Items {
		v, err := argumentOf(item.Value)
		if err != nil {
			return n, err
		}
		n.Exceptions = append(n.Exceptions, hotspot.Exception{Value: argument.Of(v), Threshold: float64(int64(item.Count))})
	}
	return n.Normalized()
}

// argumentOf is an argument of a call: text, a whole number, a decimal one, a boolean,
// nil, or a list of these.
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

// elements are the values of an argument, one after the other, and whether it is a
// list.
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
