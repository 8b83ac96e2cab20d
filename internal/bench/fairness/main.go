// Command fairness plays tenants that ask for more than there is, with a queue that is first come,
// first served and with fair shares. It runs on a virtual clock with a fixed seed, so every run
// prints the same table.
//
//	go run ./fairness          print
//	go run ./fairness -write   keep the table in docs/fairness.md
//
// Run these in the folder internal/bench with GOWORK=off.
package main

import (
	"fmt"
	"time"

	"github.com/penstock-go/penstock/internal/bench/report"
)

const page = "docs/fairness.md"

func main() { report.Page(page, "fairness", table) }

func table() string {
	t := report.NewTable("", "in order", "shares")
	both := func(s scenario, rows func(o *outcome) [][2]string) {
		unfair, fair := rows(play(s, false)), rows(play(s, true))
		for i := range fair {
			t.Row("", fair[i][0], unfair[i][1], fair[i][1])
		}
	}
	both(overload(), func(o *outcome) [][2]string {
		got := o.tenants
		rows := [][2]string{{"Jain's index of got / max-min", fmt.Sprintf("%.4f", o.jain())}}
		for i, name := range []string{"small", "medium", "large"} {
			rows = append(rows,
				[2]string{name + ": refused", fmt.Sprintf("%.0f %%", 100*got[i].refused())},
				[2]string{name + ": permits", fmt.Sprintf("%.1f", got[i].permits(o.length))},
				[2]string{name + ": wait, mean", millis(got[i].wait())},
				[2]string{name + ": wait, p99", millis(got[i].p99())})
		}
		return append(rows, [2]string{"inversions", fmt.Sprint(o.inversions)})
	})
	both(longCalls(), func(o *outcome) [][2]string {
		return [][2]string{{"one of 40 has calls 10 times as long, limit 8: its permits (fair 0.20)", fmt.Sprintf("%.2f", o.tenants[0].permits(o.length))}}
	})
	both(largeCalls(), func(o *outcome) [][2]string {
		return [][2]string{{"calls of 1 and of 10 units, limit 20: units of each (fair 10, 10)", fmt.Sprintf("%.1f, %.1f", o.tenants[0].permits(o.length), o.tenants[1].permits(o.length))}}
	})
	both(weighted(), func(o *outcome) [][2]string {
		return [][2]string{{"weight 16 among eight of 1, limit 8: its permits (fair 5.33)", fmt.Sprintf("%.2f", o.tenants[0].permits(o.length))}}
	})
	unfair, fair := playTurns(turnsOverload(), 500*time.Millisecond, false), playTurns(turnsOverload(), 500*time.Millisecond, true)
	t.Row("", "a throttle of 100 a second: Jain's index", fmt.Sprintf("%.4f", unfair.jain()), fmt.Sprintf("%.4f", fair.jain()))
	for i, name := range []string{"small", "medium", "large"} {
		a, b := &unfair.tenants[i], &fair.tenants[i]
		t.Row("", name+": refused", fmt.Sprintf("%.0f %%", 100*a.refused()), fmt.Sprintf("%.0f %%", 100*b.refused()))
		t.Row("", name+": calls a second", fmt.Sprintf("%.1f", a.permits(unfair.length)), fmt.Sprintf("%.1f", b.permits(fair.length)))
		t.Row("", name+": wait, mean", millis(a.wait()), millis(b.wait()))
		t.Row("", name+": wait, p99", millis(a.p99()), millis(b.p99()))
	}
	return t.String()
}

// turnsOverload asks a throttle for three times its rate, in the proportion 1 to 10 to 100.
func turnsOverload() scenario {
	s := scenario{limit: 100, length: 10 * time.Minute}
	for _, part := range []float64{1, 10, 100} {
		s.tenants = append(s.tenants, tenant{rate: 300 * part / 111, mean: time.Second, weight: 1, units: 1})
	}
	return s
}

func millis(d time.Duration) string { return fmt.Sprintf("%.1f ms", d.Seconds()*1000) }

// overload asks for three times the capacity: 100 permits, calls of 100 ms, tenants that ask in the
// proportion 1 to 10 to 100.
func overload() scenario {
	s := scenario{limit: 100, queue: 500, length: 60 * time.Second}
	for _, part := range []float64{1, 10, 100} {
		s.tenants = append(s.tenants, tenant{rate: 3000 * part / 111, mean: 100 * time.Millisecond, weight: 1, units: 1})
	}
	return s
}

// longCalls has 40 tenants that all have calls waiting. The calls of the first are ten times as long.
func longCalls() scenario {
	s := scenario{limit: 8, queue: 1000, length: 200 * time.Second}
	for i := range 40 {
		x := tenant{waiting: 20, mean: 10 * time.Millisecond, weight: 1, units: 1}
		if i == 0 {
			x.mean *= 10
		}
		s.tenants = append(s.tenants, x)
	}
	return s
}

// largeCalls has two tenants. The calls of the second take ten times the units.
func largeCalls() scenario {
	s := scenario{limit: 20, queue: 100, length: 60 * time.Second}
	for _, n := range []int64{1, 10} {
		s.tenants = append(s.tenants, tenant{waiting: 20, mean: 10 * time.Millisecond, weight: 1, units: n})
	}
	return s
}

// weighted has nine tenants that all have calls waiting. The first weighs 16.
func weighted() scenario {
	s := scenario{limit: 8, queue: 1000, length: 60 * time.Second}
	for i := range 9 {
		x := tenant{waiting: 20, mean: 10 * time.Millisecond, weight: 1, units: 1}
		if i == 0 {
			x.weight = 16
		}
		s.tenants = append(s.tenants, x)
	}
	return s
}
