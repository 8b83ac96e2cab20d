package core

import (
	"fmt"
	"strings"

	"github.com/penstock-go/penstock/internal/shown"
)

// LevelStats counts the calls of one level that a rule with a shed order has decided on.
type LevelStats struct {
	Level    Level `json:"level"`
	Offered  int64 `json:"offered"`
	Admitted int64 `json:"admitted"`
	Refused  int64 `json:"refused"` // for whichever reason: the limit, or the reserve
	Reserve  int64 `json:"reserve"` // units that calls of this level leave free as of now
}

// LevelLines returns the counts of levels with calls as text, in lines that begin with a title: "shed
// of orders" has levels such as "sheddable 21 of 4000, leaves 48".
func LevelLines(title string, levels []LevelStats) []string {
	var parts []string
	for _, l := range levels {
		if l.Offered == 0 {
			continue
		}
		part := fmt.Sprintf("%v %s of %s", l.Level, shown.AppendCount(nil, l.Admitted), shown.AppendCount(nil, l.Offered))
		if l.Reserve > 0 {
			part += fmt.Sprintf(", leaves %d", l.Reserve)
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return nil
	}
	return []string{title + ": " + strings.Join(parts, "; ")}
}
