package penstockkratos

import (
	"context"
	"errors"

	kerrors "github.com/go-kratos/kratos/v2/errors"
	"github.com/go-kratos/kratos/v2/transport"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/penstock-go/penstock/adapters/refusal"
)

// refused is a refusal as kratos reports it over HTTP and over gRPC.
type refused struct {
	err      error          // from api.Entry
	kratos   *kerrors.Error // over HTTP
	grpc     *status.Status
	reported bool // already reported to the client of this call
}

// Error names the rule, as the *api.BlockError does; reports to clients don't.
func (r *refused) Error() string { return r.err.Error() }

// Unwrap returns the errors that kratos looks for, and that of api.Entry.
func (r *refused) Unwrap() []error { return []error{r.kratos, r.err} }

// GRPCStatus is for status.FromError.
func (r *refused) GRPCStatus() *status.Status { return r.grpc }

func refuse(err error) *refused {
	why := refusal.Of(err)
	s := why.GRPC()
	if s.Code == refusal.OK { // an unknown code
		answer := kerrors.InternalServer("", "the call could not be made")
		return &refused{err: err, kratos: answer, grpc: status.New(codes.Internal, answer.Message)}
	}
	st := status.New(codes.Code(s.Code), s.Message)
	details := []protoadapt.MessageV1{&errdetails.ErrorInfo{Reason: s.Reason, Domain: s.Domain, Metadata: s.Metadata}}
	if s.RetryDelay > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(s.RetryDelay)})
	}
	if with, err := st.WithDetails(details...); err == nil { // fails for names that aren't UTF-8
		st = with
	}
	return &refused{err: err, kratos: kerrors.New(why.HTTPStatus(), s.Reason, s.Message).WithMetadata(s.Metadata), grpc: st}
}

// report turns an error from a server's call into one that reports a refusal to the client, if err
// is a refusal of the call itself or of a call that its handler made.
func report(ctx context.Context, t transport.Transporter, err error) error {
	why := refusal.Of(err)
	if why.Reason == refusal.None {
		return err
	}
	r, ours := errors.AsType[*refused](err)
	switch _, own := status.FromError(err); {
	case ours && r.reported:
		return err
	case ours: // from a server's middleware, or that of a client of the handler
		r = refuse(r.err)
	case own: // the handler's own, which are kratos errors too
		return err
	default:
		r = refuse(err)
	}
	r.reported = true
	if t.Kind() == transport.KindHTTP {
		why.SetHeaders(t.ReplyHeader().Set, refusal.NoHeaders)
	} else if pushback := why.GRPC().Pushback; pushback != "" {
		// SetTrailer fails if the context doesn't come from a server.
		_ = grpc.SetTrailer(ctx, metadata.Pairs(refusal.PushbackTrailer, pushback))
	}
	return r
}
