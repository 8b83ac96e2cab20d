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

// PushbackTrailer is the trailer in which a gRPC server tells retrying clients when to retry; see
// [Status.Pushback].
const PushbackTrailer = "grpc-retry-pushback-ms"

// Status holds the contents of a gRPC status for a refusal. Each framework's adapter turns it into
// the framework's own messages.
type Status struct {
	Code    Code
	Message string // for people; names no rule, since it may leave the company
	// Reason, Domain and Metadata are the fields of google.rpc.ErrorInfo.
	Reason   string // such as FLOW_BLOCKED
	Domain   string
	Metadata map[string]string // the resource
	// RetryDelay is the wait before a retry, as in google.rpc.RetryInfo; 0 if unknown.
	RetryDelay time.Duration
	// Pushback is the value of PushbackTrailer: milliseconds, or -1 for never; "" if unknown.
	Pushback string
}

// GRPC returns the gRPC status that reports the refusal; for the zero value, OK.
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
		s.Message, s.Reason = "the deadline passed while the call waited for admission", "GAVE_UP_WAITING"
	case Gone:
		s.Message, s.Reason = "the call was canceled while it waited for admission", "GAVE_UP_WAITING"
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
