package core

import (
	"time"

	"github.com/penstock-go/penstock/core/argument"
)

// Notice reports that the use of a rule's limit has reached one of the shares in its field notify. See
// api.Guard.OnNotice.
type Notice struct {
	At       time.Time // of the call, on the Guard's clock, in UTC
	Kind     Kind
	Rule     string         // its ID
	Resource string         // the pattern if the rule counts all names together
	Value    argument.Value // of a hotspot rule; otherwise none
	Percent  int            // the share
	// Used and Limit are the rule's units in the interval that ends with the call.
	Used     int64
	Limit    int64
	Interval time.Duration // in nanoseconds; of a quota, the length of its period
	// Missed is the number of notices before this one that found the queue of the listeners full.
	Missed int64
}
