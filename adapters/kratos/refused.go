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

// refused is a refusal as kratos reports it by HTTP, and as gRPC does.
type refused struct {
	err    error          // that of api.Entry
	kratos *kerrors.Error // by HTTP
	grpc   *status.Status
	told   bool // to the client whose call it is
}

// Error names the rule, as that of the *api.BlockError. What is told doesn't.
func (r *refused) Error() string { return r.err.Error() }

// Unwrap returns what kratos looks for, and what api.Entry returned.
func (r *refused) Unwrap() []error { return []error{r.kratos, r.err} }

// GRPCStatus is for status.FromError.
func (r *refused) GRPCStatus() *status.Status { return r.grpc }

func refuse(err error) *refused {
	why := refusal.Of(err)
	s := why.GRPC()
	if s.Code == refusal.OK { // none that is known
		told := kerrors.InternalServer("", "the call could not be made")
		return &refused{err: err, kratos: told, grpc: status.New(codes.Internal, told.Message)}
	}
	st := status.New(codes.Code(s.Code), s.Message)
	details := []protoadapt.MessageV1{&errdetails.ErrorInfo{Reason: s.Reason, Domain: s.Domain, Metadata: s.Metadata}}
	if s.RetryDelay > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(s.RetryDelay)})
	}
	if with, err := st.WithDetails(details...); err == nil { // or a name is no UTF-8, and goes untold
		st = with
	}
	return &refused{err: err, kratos: kerrors.New(why.HTTPStatus(), s.Reason, s.Message).WithMetadata(s.Metadata), grpc: st}
}

// tell turns the error of a server's call into one that reports a refusal to the client, if it is
// one: of the call, or of one that its handler made.
func tell(ctx context.Context, t transport.Transporter, err error) error {
	why := refusal.Of(err)
	if why.Reason == refusal.None {
		return err
	}
	r, ours := errors.AsType[*refused](err)
	switch _, own := status.FromError(err); {
	case ours && r.told:
		return err
	case ours: // of this package: by a middleware of a server, or by that of a client of the handler's
		r = refuse(r.err)
	case own: // of the handler, which are errors of kratos too
		return err
	default:
		r = refuse(err)
	}
	r.told = true
	if t.Kind() == transport.KindHTTP {
		why.SetHeaders(t.ReplyHeader().Set, refusal.NoHeaders)
	} else if pushback := why.GRPC().Pushback; pushback != "" {
		_ = grpc.SetTrailer(ctx, metadata.Pairs(refusal.PushbackTrailer, pushback)) // fails where no server made the context
	}
	return r
}
