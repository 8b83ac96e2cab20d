package engine

import (
	"fmt"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/pattern"
)

var (
	errNoResource   = fmt.Errorf("%w: the resource has no name", core.ErrInvalid)
	errLongResource = fmt.Errorf("%w: the name of the resource has more than %d bytes", core.ErrInvalid, pattern.MaxName)
	errLongContext  = fmt.Errorf("%w: the name of the context has more than %d bytes", core.ErrInvalid, pattern.MaxName)
	errLongOrigin   = fmt.Errorf("%w: the name of the caller has more than %d bytes", core.ErrInvalid, pattern.MaxName)
)
