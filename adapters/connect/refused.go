package penstockconnect

import (
	"errors"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/penstock-go/penstock/adapters/refusal"
)

// refused is a refusal whose text may reach outsiders: connect sends the text of errors.
type refused struct {
	message string
	err     error // from api.Entry
}

// Error names no rule.
func (r *refused) Error() string { return r.message }

// Unwrap returns the error from api.Entry.
func (r *refused) Unwrap() error { return r.err }

// refuse turns an error of api.Entry into one of connect, for a client of that protocol.
func refuse(err error, protocol string) *connect.Error {
	why := refusal.Of(err)
	s := why.GRPC()
	if s.Code == refusal.OK { // an unknown code
		return connect.NewError(connect.CodeInternal, &refused{"the call could not be made", err})
	}
	status := connect.NewError(connect.Code(s.Code), &refused{s.Message, err})
	details := []proto.Message{&errdetails.ErrorInfo{Reason: s.Reason, Domain: s.Domain, Metadata: s.Metadata}}
	if s.RetryDelay > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(s.RetryDelay)})
	}
	for _, d := range details {
		if detail, err := connect.NewErrorDetail(d); err == nil { // fails for names that aren't UTF-8
			status.AddDetail(detail)
		}
	}
	why.SetHeaders(func(name, value string) {
		if name != "Cache-Control" || protocol == connect.ProtocolConnect { // no trailer elsewhere
			status.Meta().Set(name, value)
		}
	}, refusal.NoHeaders)
	if s.Pushback != "" {
		status.Meta().Set(refusal.PushbackTrailer, s.Pushback)
	}
	return status
}

// report turns an error from a server's call into one that reports a refusal to the client, if err
// is the refusal of a call that the handler made.
func report(err error, protocol string) error {
	if refusal.Of(err).Reason == refusal.None {
		return err
	}
	if _, ok := errors.AsType[*connect.Error](err); ok { // from the handler, or from an Interceptor
		return err
	}
	return refuse(err, protocol)
}
