package penstockconnect

import (
	"errors"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/penstock-go/penstock/adapters/refusal"
)

// refused is a refusal in the words that may leave the house: connect sends the text of errors.
type refused struct {
	message string
	err     error // that of api.Entry
}

// Error names no rule.
func (r *refused) Error() string { return r.message }

// Unwrap returns what api.Entry returned.
func (r *refused) Unwrap() error { return r.err }

// refuse turns an error of api.Entry into connect's, for a client that speaks a protocol.
func refuse(err error, protocol string) *connect.Error {
	why := refusal.Of(err)
	s := why.GRPC()
	if s.Code == refusal.OK { // none that is known
		return connect.NewError(connect.CodeInternal, &refused{"the call could not be made", err})
	}
	told := connect.NewError(connect.Code(s.Code), &refused{s.Message, err})
	details := []proto.Message{&errdetails.ErrorInfo{Reason: s.Reason, Domain: s.Domain, Metadata: s.Metadata}}
	if s.RetryDelay > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(s.RetryDelay)})
	}
	for _, d := range details {
		if detail, err := connect.NewErrorDetail(d); err == nil { // or a name is no UTF-8, and goes untold
			told.AddDetail(detail)
		}
	}
	why.SetHeaders(func(name, value string) {
		if name != "Cache-Control" || protocol == connect.ProtocolConnect { // which is no trailer, as others send it
			told.Meta().Set(name, value)
		}
	}, refusal.NoHeaders)
	if s.Pushback != "" {
		told.Meta().Set(refusal.PushbackTrailer, s.Pushback)
	}
	return told
}

// tell turns the error of a server's call into one that reports a refusal to the client, if it is
// one: of a call that its handler made.
func tell(err error, protocol string) error {
	if refusal.Of(err).Reason == refusal.None {
		return err
	}
	if _, ok := errors.AsType[*connect.Error](err); ok { // the handler's own, or that of an Interceptor
		return err
	}
	return refuse(err, protocol)
}
