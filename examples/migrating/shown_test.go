package migrating_test

import (
	sentinel "github.com/alibaba/sentinel-golang/api"
	"github.com/alibaba/sentinel-golang/core/base"
)

var _ = before

// before is what docs/migrating.md shows of sentinel-golang.
func before(work func() error) error {
	e, blocked := sentinel.Entry("GET /orders", sentinel.WithTrafficType(base.Inbound))
	if blocked != nil {
		return blocked
	}
	if err := work(); err != nil {
		sentinel.TraceError(e, err)
	}
	e.Exit()
	return nil
}
