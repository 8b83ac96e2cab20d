// Package bandwidth limits the bytes of streams: bodies, connections, any [io.Reader] or [io.Writer].
// A stream belongs to a call, and asks for each chunk with [api.Admitted.More] while the call runs.
// Under a flow rule with a unit and behavior throttle, it waits until the chunk's turn:
//
//	flow:
//	  - {resource: GET /file, unit: bytes, threshold: 10000000, behavior: throttle} # 10 MB/s for all
//
// A chunk has at most 16 KiB, and turns are in the order in which streams ask, so streams that always
// have something to send share a limit evenly. The calls need no [api.Cost]. Without a rule for the unit
// nothing waits.
//
// A rule with another behavior refuses a chunk that doesn't fit, and the stream reports the refusal as
// an error: such a rule should have room for a chunk, or every full one is refused.
//
// Readers, writers and connections must be used before the call exits. They hide methods of what they
// wrap, such as the ReadFrom of a TCP connection, so the kernel doesn't copy files by itself.
//
// # Errors
//
// Errors of the wrapped reader, writer or connection stay as they are. If More fails, its error is
// wrapped: [errors.Is] finds [api.ErrBlocked], [api.ErrExited] or [api.ErrInvalid], the last for an
// invalid unit, and [errors.As] finds the *[api.BlockError]. When the context ends, the place in the queue
// is given back, and the error wraps that of the context. After any of these errors a stream can be used again:
// nothing is lost, and nothing is charged twice.
package bandwidth
