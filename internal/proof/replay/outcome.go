package replay

// Outcome is the result of replaying one trace.
type Outcome struct {
	Name    string
	Skipped string // the families that don't exist yet, or "" if the trace was replayed
	Failure error

	Ops     int // operations that were compared, up to the first changed decision
	Enters  int // in the trace
	Kept    int // verdicts that match our promise
	Agreed  int // verdicts equal to Java's, up to the first changed decision
	Alike   int // the same in the whole trace
	Figures int // figures equal to Java's

	Row       string         // of the first changed decision, or "" if there is none
	Change    string         // its description
	After     int            // enters at and after it
	Asides    map[string]int // by row, other verdicts and loads that differ slightly from Java's
	Explained map[string]int // by row, figures that differ from Java's
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
