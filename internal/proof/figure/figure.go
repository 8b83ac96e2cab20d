// Package figure lets checks report their results as numbers: what was measured, over how many
// trials, with which seed, against which target. An ordinary test run only logs them; `make
// figures` (package internal/proof/figures) runs the checks at larger sizes, collects the numbers
// and prints one table.
package figure

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"
)

// The environment variables that package internal/proof/figures sets for its tests.
const (
	// FileEnv names the file that figures are appended to, one JSON object a line.
	FileEnv = "PENSTOCK_FIGURES"
	// SizeEnv chooses the size of the checks: "" for the ordinary test run, "figures", which takes
	// about an hour on two cores, "long", or a time limit such as "20m".
	SizeEnv = "FIGURES"
)

// NightEnv names the variable that makes go test run tests guarded by AtNight.
const NightEnv = "PENSTOCK_NIGHT"

// AtNight skips the test unless PENSTOCK_NIGHT is set, as in `make night`: the test builds
// programs, or is too long for each commit.
func AtNight(t testing.TB) {
	t.Helper()
	if os.Getenv(NightEnv) == "" {
		t.Skipf("runs in make night, or with %s=1", NightEnv)
	}
}

// Figure is one result of a check.
type Figure struct {
	// Name describes the measurement, such as "over-admissions, window".
	Name  string
	Value float64
	// Unit is the unit of Value and AtMost, or "" for a count.
	Unit string
	// AtMost is the target. If AtLeast is set, that is the target instead.
	AtMost  float64
	AtLeast float64 `json:",omitempty"`
	// N is the number of trials, such as entries, schedules or rewrites.
	N int64
	// Seed repeats the run, or is 0 if nothing in it is random.
	Seed uint64
	// Test is the test that reported it, and Package the test's folder. Report sets both.
	Test    string
	Package string
}

// Met reports whether the value meets its target.
func (f Figure) Met() bool {
	if f.AtLeast != 0 {
		return f.Value >= f.AtLeast
	}
	return f.Value <= f.AtMost
}

func (f Figure) String() string {
	target := "at most " + number(f.AtMost)
	if f.AtLeast != 0 {
		target = "at least " + number(f.AtLeast)
	}
	return fmt.Sprintf("%s: %s%s (%s%s; n %d, seed %d)",
		f.Name, number(f.Value), f.Unit, target, f.Unit, f.N, f.Seed)
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

// Report logs a figure, fails the test if it misses its target, and records it for the table.
func Report(t testing.TB, f Figure) {
	t.Helper()
	f.Test = t.Name()
	if f.Met() {
		t.Log(f)
	} else {
		t.Error(f)
	}
	name := os.Getenv(FileEnv)
	if name == "" {
		return
	}
	f.Package, _ = os.Getwd()
	line, err := json.Marshal(f)
	if err != nil {
		t.Fatalf("figure %s: %v", f.Name, err)
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatalf("figure %s: %v", f.Name, err)
	}
	// One write per line: several tests may append at the same time.
	_, err = file.Write(append(line, '\n'))
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		t.Fatalf("figure %s: %v", f.Name, err)
	}
}

// Size chooses the number of trials: few under -short, ordinary in a test run, more for `make
// figures`, and most for FIGURES=long. A time below an hour chooses a number between ordinary and
// figures, and a time of eight hours or more the largest.
func Size(short, ordinary, figures, long int) int {
	switch size := os.Getenv(SizeEnv); size {
	case "":
	case "long":
		return long
	case "figures":
		return figures
	default:
		return sizeFor(size, ordinary, figures, long)
	}
	if testing.Short() {
		return short
	}
	return ordinary
}

func sizeFor(size string, ordinary, figures, long int) int {
	d, err := time.ParseDuration(size)
	switch {
	case err != nil || d <= 0:
		panic(fmt.Sprintf("%s=%s: use figures, long or a time such as 20m", SizeEnv, size))
	case d >= 8*time.Hour:
		return long
	case d >= time.Hour:
		return figures
	}
	return ordinary + int(float64(figures-ordinary)*d.Hours())
}
