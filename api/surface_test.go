package api_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/internal/engine"
	"github.com/penstock-go/penstock/node"
	"github.com/penstock-go/penstock/observe/inspect"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/rules/lint"
)

// A type that has a name in api and in another package is the same type.
var (
	_ *api.BlockError = (*core.BlockError)(nil)
	_ api.Option      = engine.Option{}
	_ api.RuleSet     = rules.Set{}
	_ api.Reload      = rules.Reload{}
	_ api.Caps        = node.Caps{}
)

// Every kind of refusal has a name in api, and every mode.
func TestKindsAndModesHaveNames(t *testing.T) {
	kinds := []api.Kind{api.KindNone, api.KindAuthority, api.KindSystem, api.KindHotspot, api.KindFlow, api.KindIsolation,
		api.KindAdaptive, api.KindBreaker, api.KindUpstream, api.KindOutlier, api.KindCustom}
	for i, kind := range append(kinds, api.Kind(len(kinds))) {
		assert.Equal(t, core.Kind(i), kind)
		assert.Equal(t, i == len(kinds), strings.HasPrefix(kind.String(), "kind("), "%v", kind)
	}
	modes := []api.Mode{api.Enforce, api.Shadow, api.Off}
	for i, mode := range append(modes, api.Mode(len(modes))) {
		assert.Equal(t, spec.Mode(i), mode)
		assert.Equal(t, i == len(modes), strings.HasPrefix(mode.String(), "mode("), "%v", mode)
	}
}

// The surface that users compile against, to the letter.
var (
	_ func(context.Context, string, ...api.Option) (api.Admitted, error)                            = api.Entry
	_ func(context.Context, string, func(context.Context) error, ...api.Option) error               = api.Do
	_ func(context.Context, string, func(context.Context) (int, error), ...api.Option) (int, error) = api.Call[int]
	_ func(context.Context, string) context.Context                                                 = api.WithContext
	_ func(context.Context, string) context.Context                                                 = api.WithOrigin
	_ func(context.Context, string, ...api.Option) (api.Explanation, error)                         = api.Explain
	_ func(*api.Guard, context.Context, string, ...api.Option) (api.Explanation, error)             = (*api.Guard).Explain
	_ func() api.Option                                                                             = api.Inbound
	_ func(int) api.Option                                                                          = api.Units
	_ func(string, int64) api.Option                                                                = api.Cost
	_ func(api.Admitted, string, int64)                                                             = api.Admitted.Settle
	_ func(api.Admitted, context.Context, string, int64) error                                      = api.Admitted.More
	_ func(api.Admitted, string) *api.Meter                                                         = api.NewMeter
	_ func(*api.Meter, context.Context, int64) error                                                = (*api.Meter).Add
	_ func(*api.Meter) int64                                                                        = (*api.Meter).Used
	_ func(*api.Meter)                                                                              = (*api.Meter).Settle
	_ func(context.Context) api.Admitted                                                            = api.FromContext
	_ func() api.Option                                                                             = api.Prioritized
	_ func(...any) api.Option                                                                       = api.Args
	_ func(string, string) api.Option                                                               = api.Param[string]
	_ func(string, []int) api.Option                                                                = api.Param[[]int]
	_ func(api.RuleSet) error                                                                       = api.LoadRules
	_ func(string) error                                                                            = api.LoadRulesFile
	_ func(string, []byte) (api.RuleSet, error)                                                     = api.ParseRules
	_ func(error) api.Kind                                                                          = api.KindOf
	_ func(time.Time) *api.ManualClock                                                              = api.NewManualClock
	_ func(context.Context, ...string) error                                                        = api.WatchRules
	_ func(context.Context, rules.Source, api.SourceOptions) error                                  = api.WatchSource
	_ func(*api.Guard, context.Context, rules.Source, api.SourceOptions) error                      = (*api.Guard).WatchSource
	_ func(func(api.Reload))                                                                        = api.OnReload
	_ func(*api.Guard, func(api.Reload))                                                            = (*api.Guard).OnReload
	_ func() api.RuleSet                                                                            = api.Rules
	_ func() inspect.Tree                                                                           = api.Tree
	_ func() http.Handler                                                                           = api.Handler
	_ func(error) error                                                                             = api.Ignore
	_ func(string, func(error) bool)                                                                = api.FailWhen
	_ func(*api.Guard, string, func(error) bool)                                                    = (*api.Guard).FailWhen
	_ func() []breaker.Status                                                                       = api.Breakers
	_ func(func(breaker.Change)) func()                                                             = api.OnBreaker
	_ func(string, string, breaker.Force) error                                                     = api.ForceBreaker
	_ func(*api.Guard) []breaker.Status                                                             = (*api.Guard).Breakers
	_ func(*api.Guard, func(breaker.Change)) func()                                                 = (*api.Guard).OnBreaker
	_ func(*api.Guard, string, string, breaker.Force) error                                         = (*api.Guard).ForceBreaker
	_ func(api.Config) (*api.Guard, error)                                                          = api.New
	_ func() *api.Guard                                                                             = api.Default
	_ func(*api.Guard) func()                                                                       = api.SetDefault
	_ func(*api.Guard, context.Context, string, ...api.Option) (api.Admitted, error)                = (*api.Guard).Entry
	_ func(*api.Guard, context.Context, string, func(context.Context) error, ...api.Option) error   = (*api.Guard).Do
	_ func(*api.Guard, api.RuleSet) error                                                           = (*api.Guard).LoadRules
	_ func(*api.Guard, func(api.RuleSet) (api.RuleSet, error)) error                                = (*api.Guard).EditRules
	_ func(*api.Guard, string) error                                                                = (*api.Guard).LoadRulesFile
	_ func(*api.Guard, context.Context, ...string) error                                            = (*api.Guard).WatchRules
	_ func(*api.Guard) api.Status                                                                   = (*api.Guard).Status
	_ func()                                                                                        = api.AllowOverrides
	_ func(*api.Guard)                                                                              = (*api.Guard).AllowOverrides
	_ func(*api.Guard) []api.Revision                                                               = (*api.Guard).Revisions
	_ func(*api.Guard) api.RuleSet                                                                  = (*api.Guard).Rules
	_ func(*api.Guard, lint.Options) []lint.Finding                                                 = (*api.Guard).Lint
	_ func(*api.Guard) inspect.Tree                                                                 = (*api.Guard).Tree
	_ func(*api.Guard) []core.Leak                                                                  = (*api.Guard).Leaks
	_ func(*api.Guard) http.Handler                                                                 = (*api.Guard).Handler
	_ func(*api.Guard) error                                                                        = (*api.Guard).Close
	_ interface{ Exit() }                                                                           = api.Admitted{}
	_ interface {
		Fail(error)
		ExitOn(*error)
		Context() context.Context
	} = api.Admitted{}
)
