package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/penstock-go/penstock/internal/proof/figure"
)

// claims are the statements that figures support, in the page's words. A figure belongs to the
// first claim with a matching name; the remaining figures are in the last row.
var claims = []struct {
	text  string
	names *regexp.Regexp
	all   bool // every case was tried, so there is no rate to estimate
}{
	{"calls admitted beyond a limit", regexp.MustCompile(`over-admissions|admitted beyond|more were admitted|over the limit|over their (limit|bound)` +
		`|above the ceiling|beyond an isolation|limits off|names gained`), false},
	{"calls refused despite room, as a share", regexp.MustCompile(`spurious refusals`), false},
	{"orders of steps that break a promise, in small cases searched completely", regexp.MustCompile(`every schedule`), true},
	{"orders of steps that break a promise, at random", regexp.MustCompile(`^violations: Test`), false},
	{"steps at which the engine and a naive model differ", regexp.MustCompile(`from the model|serial order|otherwise without`), false},
	{"counts lost, doubled or left behind", regexp.MustCompile(`counts lost|calls lost|out of balance|counted elsewhere|nodes lost|left by refused|did not count`), false},
	{"surplus permits, probes and ejections; lost waits; entries used twice", regexp.MustCompile(
		`waits lost|semaphore off|too many probes|stay stuck|use after exit|ejected than`), false},
	{"wrong verdicts on clocks that are set, or differ by processor", regexp.MustCompile(`clock-step|on clocks that differ`), false},
	{"rule files half read, wrongly applied, or torn by a reload", regexp.MustCompile(`rule files|torn|half files|loader's|left a trace`), false},
	{"heap above its cap under a flood of names, in the worst case", regexp.MustCompile(`heap over the cap`), false},
	{"from a changed file to the first decision under it, 99th percentile", regexp.MustCompile(`from file to decision`), false},
}

// summary has a row for each claim: the result, and the number of trials. Trials of figures with
// the target zero are added up; otherwise the worst figure counts.
func summary(t table) string {
	groups := make([][]figure.Figure, len(claims)+1)
	for _, r := range t.results {
		for _, f := range r.figures {
			groups[claimOf(f)] = append(groups[claimOf(f)], f)
		}
	}
	var b strings.Builder
	b.WriteString("| Looked for | Found | Trials | Rate below |\n|---|---|---|---|\n")
	for i, c := range claims {
		if len(groups[i]) == 0 {
			continue
		}
		all := together(groups[i])
		rate := ""
		if !c.all {
			rate = bound(all)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", c.text, number(all.Value)+all.Unit, grouped(all.N), rate)
	}
	if others := groups[len(claims)]; len(others) > 0 {
		missed := 0
		for _, f := range others {
			if !f.Met() {
				missed++
			}
		}
		fmt.Fprintf(&b, "| other figures that miss their target | %d | %d figures | |\n", missed, len(others))
	}
	return b.String()
}

func claimOf(f figure.Figure) int {
	for i, c := range claims {
		if c.names.MatchString(f.Name) {
			return i
		}
	}
	return len(claims)
}

// together returns the sum of figures that count violations, and the worst of others.
func together(figures []figure.Figure) figure.Figure {
	all := figure.Figure{Unit: figures[0].Unit}
	for i, f := range figures {
		all.N += f.N
		if f.Unit == "" && f.AtMost == 0 && f.AtLeast == 0 {
			all.Value += f.Value
		} else if i == 0 || f.Value > all.Value {
			all.Value = f.Value
		}
	}
	return all
}
