package penstockgrpc

import (
	"errors"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/penstock-go/penstock/adapters/refusal"
)

// refused is a refusal with the status that reports it.
type refused struct {
	err      error // from api.Entry
	status   *status.Status
	pushback string
	reported bool // already reported to the client of this call
}

func refuse(err error) *refused {
	s := refusal.Of(err).GRPC()
	if s.Code == refusal.OK { // an unknown code
		return &refused{err: err, status: status.New(codes.Internal, "the call could not be made")}
	}
	st := status.New(codes.Code(s.Code), s.Message)
	details := []protoadapt.MessageV1{&errdetails.ErrorInfo{Reason: s.Reason, Domain: s.Domain, Metadata: s.Metadata}}
	if s.RetryDelay > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(s.RetryDelay)})
	}
	if with, err := st.WithDetails(details...); err == nil { // fails for names that aren't UTF-8
		st = with
	}
	return &refused{err: err, status: st, pushback: s.Pushback}
}

// Error names the rule, as the *api.BlockError does; the status doesn't.
func (r *refused) Error() string { return r.err.Error() }

// Unwrap returns the error from api.Entry.
func (r *refused) Unwrap() error { return r.err }

// GRPCStatus is for status.FromError.
func (r *refused) GRPCStatus() *status.Status { return r.status }

// report turns an error from a server's call into one that reports a refusal to the client, if err
// is a refusal of the call itself or of a call that its handler made. The trailer is the call's.
func report(err error, trailer func(metadata.MD)) error {
	if refusal.Of(err).Reason == refusal.None {
		return err
	}
	r, ok := errors.AsType[*refused](err)
	switch _, own := status.FromError(err); {
	case ok && r.reported:
		return err
	case ok: // of this package: from a server's interceptor, or from that of a client that the handler uses
		r = refuse(r.err)
	case own:
		return err
	default:
		r = refuse(err)
	}
	if r.reported = true; r.pushback != "" {
		trailer(metadata.Pairs(refusal.PushbackTrailer, r.pushback))
	}
	return r
}
