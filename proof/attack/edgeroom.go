package main

import (
	"fmt"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/node"
)

// findsRoom fills the caps of a guard at an edge of the range of time, and calls as many
// other names when all that is long over. What nobody needs any more must make room for them.
func findsRoom(r *round) error {
	clock := edgeClock(r)
	if clock == nil {
		return nil
	}
	most := 1 + r.IntN(6)
	g, _ := r.bareGuard(api.Config{Clock: clock, Caps: node.Caps{Resources: most, Contexts: 1 + most, Calls: most, Origins: most}})
	for generation := range 3 {
		for i := range most {
			r.offered.Add(1)
			name := fmt.Sprint(generation, ".", i)
			e, err := g.Entry(from(r.ctx, "context "+name, "origin "+name), name)
			if err != nil {
				return err
			}
			e.Exit()
		}
		r.checked.Add(1)
		tree := g.Tree()
		found := 0
		for _, n := range tree.Resources {
			if _, err := fmt.Sscanf(n.Name, fmt.Sprint(generation, ".%d"), new(int)); err == nil {
				found++
			}
		}
		if found != most {
			return fmt.Errorf("at %d: of %d names that come when nobody needs the %d before, %d find room", clock.Now(), most, most, found)
		}
		before := clock.Now()
		func() {
			defer func() { _ = recover() }()
			clock.Advance(r.between(2*time.Hour, 48*time.Hour))
		}()
		if clock.Now()-before < int64(2*time.Hour) { // it could not go so far
			return nil
		}
	}
	return nil
}
