package golden

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGolden replays the traces in testdata and those in the folders that
// PENSTOCK_GOLDEN lists.
func TestGolden(t *testing.T) {
	total := NewReport()
	embedded := replayAll(t, "testdata", total)
	if err := embedded.Check(); err != nil {
		t.Error(err)
	}
	for _, id := range embedded.Unused() {
		t.Errorf("row %q explains nothing any more: remove it", id)
	}
	folders := os.Getenv("PENSTOCK_GOLDEN")
	if folders != "" {
		further := replayAll(t, folders, total)
		if err := further.CheckFurther(); err != nil {
			t.Errorf("%s: %v", folders, err)
		}
	}
	fmt.Println(total.Summary())
}

// replayAll replays the traces of folders separated by colons, one subtest each.
func replayAll(t *testing.T, folders string, total *Report) *Report {
	report := NewReport()
	t.Run(folders, func(t *testing.T) {
		for _, folder := range filepath.SplitList(folders) {
			files, err := Find(folder)
			if err != nil {
				t.Error(err)
			}
			for _, file := range files {
				name, _ := filepath.Rel(folder, file)
				t.Run(strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".json"), func(t *testing.T) {
					t.Parallel()
					outcome := replayFile(file)
					report.Add(outcome)
					total.Add(outcome)
					switch {
					case outcome.Failure != nil:
						t.Errorf("%s: %v", file, outcome.Failure)
					case outcome.Skipped != "":
						t.Skipf("there is no %s yet", outcome.Skipped)
					case outcome.Row != "":
						t.Logf("%s: %s; %d of %d enters are not compared", outcome.Row, outcome.Change, outcome.After, outcome.Enters)
					}
				})
			}
		}
	})
	if testing.Verbose() {
		fmt.Println(folders + ":")
		report.Details(os.Stdout)
	}
	return report
}

func replayFile(file string) *Outcome {
	trace, err := Load(file)
	if err != nil {
		return &Outcome{Name: file, Failure: err}
	}
	return Replay(trace, table)
}
