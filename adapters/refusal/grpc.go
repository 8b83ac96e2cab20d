package refusal

import (
	"strconv"
	"strings"
	"time"
)

// Code is the number of a gRPC status.
type Code = uint32

// The codes that refusals have.
const (
	OK                Code = 0
	Canceled          Code = 1
	DeadlineExceeded  Code = 4
	PermissionDenied  Code = 7
	ResourceExhausted Code = 8
	Internal          Code = 13
	Unavailable       Code = 14
)

// Domain is the domain of the errors, as in google.rpc.ErrorInfo.
const Domain = "penstock"

// PushbackTrailer is the trailer by which a gRPC server tells clients that retry when they may,
// see [Status.Pushback].
const PushbackTrailer = "grpc-retry-pushback-ms"

// Status is what a gRPC status says of a refusal. The adapters of each framework make its own
// messages of it.
type Status struct {
	Code    Code
	Message string // for people; it names no rule, since it may leave the house
	// Reason, Domain and Metadata are the fields of google.rpc.ErrorInfo.
	Reason   string // as FLOW_BLOCKED
	Domain   string
	Metadata map[string]string // the resource
	// RetryDelay is the field of google.rpc.RetryInfo: when another try makes sense, 0 if that is
	// not known.
	RetryDelay time.Duration
	// Pushback is the value of PushbackTrailer: milliseconds, or -1 for never; "" if
	// that is not known.
	Pushback string
}

// GRPC is the gRPC status that reports it: for none, the zero value, which is OK.
func (r Refusal) GRPC() Status {
	s := Status{Code: r.code(), Domain: Domain}
	switch r.Reason {
	case None:
		return Status{}
	case Blocked:
		article := "a "
		if strings.ContainsAny(r.Kind().String()[:1], "aeiou") {
			article = "an "
		}
		s.Message = "the call was refused by " + article + r.Kind().String() + " rule"
		s.Reason = strings.ToUpper(r.Kind().String()) + "_BLOCKED"
	case GaveUp:
		s.Message, s.Reason = "the deadline came while the call waited to be let in", "GAVE_UP_WAITING"
	case Gone:
		s.Message, s.Reason = "the call was canceled while it waited to be let in", "GAVE_UP_WAITING"
	case Invalid:
		s.Message, s.Reason = "the call could not be made", "INVALID_CALL"
	case Closing:
		s.Message, s.Reason = "the server is closing", "CLOSING"
	}
	if r.Block != nil {
		s.Metadata = map[string]string{"resource": r.Block.Resource}
	}
	if ms, known := r.RetryAfter(time.Millisecond); known {
		s.RetryDelay = time.Duration(ms) * time.Millisecond
		s.Pushback = strconv.FormatInt(ms, 10)
	} else if r.Reason == Blocked && r.class().final {
		s.Pushback = "-1"
	}
	return s
}

func (r Refusal) code() Code {
	switch r.Reason {
	case None:
		return OK
	case GaveUp:
		return DeadlineExceeded
	case Gone:
		return Canceled
	case Invalid:
		return Internal
	case Closing:
		return Unavailable
	}
	return r.class().code
}
