package core

import (
	"fmt"

	"github.com/penstock-go/penstock/core/pattern"
)

var (
	errNoResource   = fmt.Errorf("%w: the resource has no name", ErrInvalid)
	errLongResource = fmt.Errorf("%w: the name of the resource has more than %d bytes", ErrInvalid, pattern.MaxName)
	errLongContext  = fmt.Errorf("%w: the name of the context has more than %d bytes", ErrInvalid, pattern.MaxName)
	errLongOrigin   = fmt.Errorf("%w: the name of the caller has more than %d bytes", ErrInvalid, pattern.MaxName)
)
