package replay

import (
	"fmt"
	"github.com/penstock-go/penstock/internal/proof/race"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGolden replays the traces in testdata and in the folders that PENSTOCK_GOLDEN lists.
func TestGolden(t *testing.T) {
	total := NewReport()
	if embedded, all := replayAll(t, "testdata", total); all {
		if err := embedded.Check(); err != nil {
			t.Error(err)
		}
		for _, id := range embedded.Unused() {
			t.Errorf("row %q no longer explains anything: remove it", id)
		}
	}
	if folders := os.Getenv("PENSTOCK_GOLDEN"); folders != "" {
		if further, all := replayAll(t, folders, total); all {
			if err := further.CheckFurther(); err != nil {
				t.Errorf("%s: %v", folders, err)
			}
		}
	}
	fmt.Println(total.Summary())
}

// replayAll replays the traces of folders separated by colons, one subtest each. all is false if go
// test -run or the race detector left some out.
func replayAll(t *testing.T, folders string, total *Report) (report *Report, all bool) {
	report = NewReport()
	traces := 0
	t.Run(folders, func(t *testing.T) {
		for _, folder := range filepath.SplitList(folders) {
			files, err := Find(folder)
			if err != nil {
				t.Error(err)
			}
			traces += len(files)
			for i, file := range files {
				if race.Enabled && i%16 != 0 {
					continue // each has one caller: there is little to race, and it takes eight times as long
				}
				name, _ := filepath.Rel(folder, file)
				t.Run(strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".json"), func(t *testing.T) {
					t.Parallel()
					outcome := replayFile(file)
					report.Add(outcome)
					total.Add(outcome)
					logOutcome(t, file, outcome)
				})
			}
		}
	})
	if testing.Verbose() {
		fmt.Println(folders + ":")
		report.Details(os.Stdout)
	}
	return report, report.traces == traces
}

func logOutcome(t *testing.T, file string, o *Outcome) {
	switch {
	case o.Failure != nil:
		t.Errorf("%s: %v", file, o.Failure)
	case o.Skipped != "":
		t.Skipf("there is no %s yet", o.Skipped)
	case o.Row != "":
		t.Logf("%s: %s; %d of %d enters are not compared", o.Row, o.Change, o.After, o.Enters)
	}
}

func replayFile(file string) *Outcome {
	trace, err := Load(file)
	if err != nil {
		return &Outcome{Name: file, Failure: err}
	}
	return Replay(trace, table)
}
