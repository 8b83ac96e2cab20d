package inspect

import (
	"reflect"

	"github.com/penstock-go/penstock/internal/shown"
	"github.com/penstock-go/penstock/stat"
)

// times holds the percentiles of resources, by name. It is nil if percentiles are off.
type times map[string]stat.Percentiles

func newTimes(resources []Node) (t times) {
	for i := range resources {
		t.add(resources[i].Name, resources[i].Percentiles)
	}
	return t
}

func (t *times) add(resource string, p stat.Percentiles) {
	if p.Count == 0 {
		return
	}
	if *t == nil {
		*t = make(times)
	}
	(*t)[resource] = p
}

// size returns its approximate size in bytes.
func (t times) size() int {
	return len(t) * int(reflect.TypeFor[string]().Size()+reflect.TypeFor[stat.Percentiles]().Size())
}

// describe adds a resource's percentiles to a line of its calls.
func (t times) describe(line *cells, resource string) {
	p, ok := t[resource]
	if !ok {
		return
	}
	text := shown.AppendDuration(append(line.text, "p50 "...), p.P50)
	text = shown.AppendDuration(append(text, " p95 "...), p.P95)
	line.end(shown.AppendDuration(append(text, " p99 "...), p.P99))
}
