package api_test

import (
	"context"
	"net/http"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/inspect"
	"github.com/penstock-go/penstock/rules"
)

// The surface that users compile against, to the letter.
var (
	_ func(context.Context, string, ...core.Option) (core.Entry, error)                              = api.Entry
	_ func(context.Context, string, func(context.Context) error, ...core.Option) error               = api.Do
	_ func(context.Context, string, func(context.Context) (int, error), ...core.Option) (int, error) = api.Call[int]
	_ func(context.Context, string, string) context.Context                                          = api.WithContext
	_ func() core.Option                                                                             = api.Inbound
	_ func(int) core.Option                                                                          = api.Count
	_ func() core.Option                                                                             = api.Prioritized
	_ func(...any) core.Option                                                                       = api.Args
	_ func(string, string) core.Option                                                               = api.Param[string]
	_ func(string, []int) core.Option                                                                = api.Param[[]int]
	_ func(rules.Set) error                                                                          = api.LoadRules
	_ func(string) error                                                                             = api.LoadRulesFile
	_ func(context.Context, string) error                                                            = api.WatchRules
	_ func() rules.Set                                                                               = api.Rules
	_ func() inspect.Tree                                                                            = api.Tree
	_ func() http.Handler                                                                            = api.Handler
	_ func(error) error                                                                              = api.Ignore
	_ func() []breaker.Status                                                                        = api.Breakers
	_ func(func(breaker.Change)) func()                                                              = api.OnBreaker
	_ func(string, string, breaker.Force) error                                                      = api.ForceBreaker
	_ func(*api.Guard) []breaker.Status                                                              = (*api.Guard).Breakers
	_ func(*api.Guard, func(breaker.Change)) func()                                                  = (*api.Guard).OnBreaker
	_ func(*api.Guard, string, string, breaker.Force) error                                          = (*api.Guard).ForceBreaker
	_ func(api.Config) (*api.Guard, error)                                                           = api.New
	_ func() *api.Guard                                                                              = api.Default
	_ func(*api.Guard) func()                                                                        = api.SetDefault
	_ func(*api.Guard, context.Context, string, ...core.Option) (core.Entry, error)                  = (*api.Guard).Entry
	_ func(*api.Guard, context.Context, string, func(context.Context) error, ...core.Option) error   = (*api.Guard).Do
	_ func(*api.Guard, rules.Set) error                                                              = (*api.Guard).LoadRules
	_ func(*api.Guard, string) error                                                                 = (*api.Guard).LoadRulesFile
	_ func(*api.Guard, context.Context, string) error                                                = (*api.Guard).WatchRules
	_ func(*api.Guard) rules.Set                                                                     = (*api.Guard).Rules
	_ func(*api.Guard) inspect.Tree                                                                  = (*api.Guard).Tree
	_ func(*api.Guard) []core.Leak                                                                   = (*api.Guard).Leaks
	_ func(*api.Guard) http.Handler                                                                  = (*api.Guard).Handler
	_ func(*api.Guard) error                                                                         = (*api.Guard).Close
	_ interface{ Exit() }                                                                            = core.Entry{}
	_ interface {
		Fail(error)
		ExitOn(*error)
		Context() context.Context
	} = core.Entry{}
)
