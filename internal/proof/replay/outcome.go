package replay

// Outcome is what came of replaying one trace.
type Outcome struct {
	Name    string
	Skipped string // the families that don't exist yet, "" if the trace was replayed
	Failure error

	Ops     int // operations that were compared, up to the first changed decision
	Enters  int // in the trace
	Kept    int // of them, verdicts that are what we promise
	Agreed  int // verdicts that are Java's in everything, up to the first changed decision
	Alike   int // and wherever they stand
	Figures int // figures that are Java's

	Row       string         // of the first changed decision, "" if there is none
	Change    string         // what that is
	After     int            // enters at and after it
	Asides    map[string]int // by row, other verdicts and loads that are not quite Java's
	Explained map[string]int // by row, figures that are not Java's
}

// Status is passed, deliberate, skipped or failed.
func (o *Outcome) Status() string {
	switch {
	case o.Failure != nil:
		return "failed"
	case o.Skipped != "":
		return "skipped"
	case o.Row != "":
		return "deliberate"
	}
	return "passed"
}
