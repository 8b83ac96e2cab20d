package engine_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/pattern"
	"github.com/penstock-go/penstock/internal/engine"
)

// Names of resources, contexts and callers have at most 1024 bytes. Longer names are kept nowhere.
// known bug 114
func TestLongNamesAreInvalid(t *testing.T) {
	longest := strings.Repeat("x", pattern.MaxName)
	tooLong := longest + "x"
	e, _ := newEngine(t, engine.Config{})
	for _, tt := range []struct{ resource, context, origin, want string }{
		{resource: longest, context: longest, origin: longest},
		{resource: tooLong, want: "penstock: invalid call: the name of the resource has more than 1024 bytes"},
		{resource: "orders", context: tooLong, want: "penstock: invalid call: the name of the context has more than 1024 bytes"},
		{resource: "orders", origin: tooLong, want: "penstock: invalid call: the name of the caller has more than 1024 bytes"},
	} {
		ctx := engine.WithOrigin(engine.WithContext(t.Context(), tt.context), tt.origin)
		for range 2 { // pooled state is like new
			entry, err := e.Enter(ctx, tt.resource, nil)
			nested, nestedErr := e.EnterBy(ctx, engine.NewHandle(tt.resource), nil)
			if tt.want == "" {
				require.NoError(t, err)
				require.NoError(t, nestedErr)
			} else {
				require.EqualError(t, err, tt.want)
				require.ErrorIs(t, err, core.ErrInvalid)
				require.Equal(t, err, nestedErr)
			}
			nested.Exit()
			entry.Exit()
		}
		_, there := e.FindResource(tt.resource)
		assert.Equal(t, tt.want == "", there)
	}
}
