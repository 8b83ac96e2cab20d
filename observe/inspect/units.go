package inspect

import (
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/shown"
)

// units holds what calls of resources reserved and used, by name. It is nil if no resource has units.
type units map[string][]core.UnitStats

func newUnits(resources []Node) (u units) {
	for i := range resources {
		u.add(resources[i].Name, resources[i].Units)
	}
	return u
}

func (u *units) add(resource string, all []core.UnitStats) {
	if len(all) == 0 {
		return
	}
	if *u == nil {
		*u = make(units)
	}
	(*u)[resource] = all
}

// describe adds a resource's units to a line of its calls.
func (u units) describe(line *cells, resource string) {
	for _, unit := range u[resource] {
		line.end(shown.Append(line.text, unit.String(), unitsWidth))
	}
}

// unitsWidth is the maximum width of a unit's counts; a program may be another's, and send any text.
const unitsWidth = 120
