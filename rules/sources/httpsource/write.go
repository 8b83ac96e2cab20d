package httpsource

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"

	"github.com/penstock-go/penstock/rules"
)

// Write implements [rules.Writer] by a PUT with If-Match, or with If-None-Match if there must be no
// document yet. Since only strong ETags can be compared this way, another revision is an error, and
// nothing is sent. Status 409 and 412 are [rules.ErrConflict]. Write never retries; if no response
// arrived, the document may have been written.
//
// The server must honour the conditions, which not every server that supports PUT does.
func (s *Source) Write(ctx context.Context, data []byte, after string) (revision string, err error) {
	if _, err := rules.Parse(s.name, data); err != nil {
		return "", err
	}
	if revision, err = s.put(ctx, data, after); err != nil {
		return "", fmt.Errorf("%s: %w", s.name, err)
	}
	return revision, nil
}

func (s *Source) put(ctx context.Context, data []byte, after string) (revision string, err error) {
	header := http.Header{"Content-Type": {"application/yaml"}}
	if strings.EqualFold(path.Ext(s.name), ".json") {
		header.Set("Content-Type", "application/json")
	}
	switch {
	case after == "":
		header.Set("If-None-Match", "*")
	case !isETag(after) || strings.HasPrefix(after, "W/"):
		return "", errors.New("the document has no strong ETag, so the server can't tell whether it is still the same")
	default:
		header.Set("If-Match", after)
	}
	err = s.exchange(ctx, http.MethodPut, header, data, func(r *http.Response) error {
		if r.Request.Method != http.MethodPut {
			return errors.New("redirected to another page: the document was not written")
		}
		switch r.StatusCode {
		case http.StatusOK, http.StatusCreated, http.StatusNoContent:
			if tag := r.Header.Get("ETag"); isETag(tag) {
				revision = tag
			}
			return nil
		case http.StatusConflict, http.StatusPreconditionFailed:
			return fmt.Errorf("%w: %w", rules.ErrConflict, statusOf(r))
		}
		return statusOf(r)
	})
	return revision, err
}

// newReader returns a reader of data; nil means no body.
func newReader(data []byte) io.Reader {
	if data == nil {
		return http.NoBody
	}
	return bytes.NewReader(data)
}
