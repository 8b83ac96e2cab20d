package penstockotel_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/observe/exporter/internal/series"
	penstockotel "github.com/penstock-go/penstock/observe/exporter/otel"
	"github.com/penstock-go/penstock/slots"
)

func newGuard(t testing.TB) (*api.Guard, *api.ManualClock) {
	t.Helper()
	clock := api.NewManualClock(time.Date(2026, 1, 2, 15, 0, 0, 0, time.UTC))
	g, err := api.New(api.Config{
		Clock: clock, Logger: slog.New(slog.DiscardHandler), Percentiles: true,
		Chain: slots.Default().With(penstockotel.Spans{}, slots.After("log")),
	})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, g.Close()) })
	require.NoError(t, g.LoadRules(api.RuleSet{
		Flow:    []flow.Rule{{ID: "few", Resource: "GET /orders", Threshold: 3}, {ID: "room", Resource: "GET /carts", Unit: "bytes", Threshold: 100}},
		Breaker: []breaker.Rule{{ID: "trip", Resource: "GET /carts", Strategy: breaker.ErrorCount, Threshold: 2, MinCalls: 1}},
	}))
	return g, clock
}

// read collects every point as text.
func read(t testing.TB, reader *sdkmetric.ManualReader) map[string]string {
	t.Helper()
	var found metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &found))
	all := make(map[string]string)
	note := func(name string, attributes attribute.Set, value any) {
		all[fmt.Sprint(name, attributes.Encoded(attribute.DefaultEncoder()))] = fmt.Sprint(value)
	}
	for _, scope := range found.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					note(m.Name+" ", p.Attributes, p.Value)
				}
			case metricdata.Sum[float64]:
				for _, p := range data.DataPoints {
					note(m.Name+" ", p.Attributes, p.Value)
				}
			case metricdata.Gauge[float64]:
				for _, p := range data.DataPoints {
					note(m.Name+" ", p.Attributes, p.Value)
				}
			default:
				t.Errorf("%s is a %T", m.Name, m.Data)
			}
		}
	}
	return all
}

func TestRegister(t *testing.T) {
	g, clock := newGuard(t)
	reader := sdkmetric.NewManualReader()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	unregister, err := penstockotel.Register(provider, g, penstockotel.Config{})
	require.NoError(t, err)
	for range 5 {
		_ = g.Do(t.Context(), "GET /orders", func(context.Context) error { clock.Advance(10 * time.Nanosecond); return nil })
		_ = g.Do(t.Context(), "GET /carts", func(context.Context) error { return errors.New("x") }, api.Cost("bytes", 7))
	}
	all := read(t, reader)
	assert.Equal(t, map[string]string{
		"penstock.entries penstock.resource=GET /orders,penstock.result=pass":                             "3",
		"penstock.entries penstock.resource=GET /orders,penstock.result=block":                            "2",
		"penstock.entries penstock.resource=GET /carts,penstock.result=pass":                              "2",
		"penstock.entries penstock.resource=GET /carts,penstock.result=block":                             "3",
		"penstock.errors penstock.resource=GET /orders":                                                   "0",
		"penstock.errors penstock.resource=GET /carts":                                                    "2",
		"penstock.entry.completed penstock.resource=GET /orders":                                          "3",
		"penstock.entry.completed penstock.resource=GET /carts":                                           "2",
		"penstock.entry.time penstock.resource=GET /orders":                                               "3e-08",
		"penstock.entry.time penstock.resource=GET /carts":                                                "0",
		"penstock.entries.active penstock.resource=GET /orders":                                           "0",
		"penstock.entries.active penstock.resource=GET /carts":                                            "0",
		"penstock.entry.percentile penstock.quantile=0.5,penstock.resource=GET /orders":                   "1e-08",
		"penstock.entry.percentile penstock.quantile=0.95,penstock.resource=GET /orders":                  "1e-08",
		"penstock.entry.percentile penstock.quantile=0.99,penstock.resource=GET /orders":                  "1e-08",
		"penstock.entry.percentile penstock.quantile=0.5,penstock.resource=GET /carts":                    "0",
		"penstock.entry.percentile penstock.quantile=0.95,penstock.resource=GET /carts":                   "0",
		"penstock.entry.percentile penstock.quantile=0.99,penstock.resource=GET /carts":                   "0",
		"penstock.rule.refusals penstock.rule=few,penstock.rule.type=flow":                                "2",
		"penstock.rule.refusals penstock.rule=trip,penstock.rule.type=breaker":                            "3",
		"penstock.rule.threshold penstock.resource=GET /orders,penstock.rule=few,penstock.rule.type=flow": "3",
		"penstock.breaker.state penstock.resource=GET /carts,penstock.rule=trip,penstock.state=open":      "1",
		"penstock.rule.refusals penstock.rule=room,penstock.rule.type=flow":                               "0",
		"penstock.rule.threshold penstock.resource=GET /carts,penstock.rule=room,penstock.rule.type=flow": "100",
		"penstock.units penstock.resource=GET /carts,penstock.result=reserved,penstock.unit=bytes":        "14",
		"penstock.units penstock.resource=GET /carts,penstock.result=refunded,penstock.unit=bytes":        "0",
		"penstock.units penstock.resource=GET /carts,penstock.result=overdrawn,penstock.unit=bytes":       "0",
		"penstock.units penstock.resource=GET /carts,penstock.result=forgiven,penstock.unit=bytes":        "0",
		"penstock.units penstock.resource=GET /carts,penstock.result=refused,penstock.unit=bytes":         "21",
		"penstock.calls.uncosted penstock.resource=GET /carts,penstock.unit=bytes":                        "0",
		"penstock.waiting ":           "0",
		"penstock.internal.failures ": "0",
	}, all)
	require.NoError(t, unregister())
	assert.Empty(t, read(t, reader))
}

// A refusal is an event on the span around the call; an admitted call adds no event.
func TestSpans(t *testing.T) {
	g, _ := newGuard(t)
	recorder := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("test")
	ctx, span := tracer.Start(t.Context(), "request")
	for range 4 {
		_ = g.Do(ctx, "GET /orders", func(context.Context) error { return nil })
	}
	_, err := g.Entry(t.Context(), "GET /orders") // without a span
	require.ErrorIs(t, err, api.ErrBlocked)
	span.End()
	require.Len(t, recorder.Ended(), 1)
	events := recorder.Ended()[0].Events()
	require.Len(t, events, 1)
	assert.Equal(t, "penstock.blocked", events[0].Name)
	assert.ElementsMatch(t, []attribute.KeyValue{
		attribute.String("error.type", "penstock.blocked.flow"), attribute.String("penstock.resource", "GET /orders"),
		attribute.String("penstock.rule", "few"), attribute.String("penstock.rule.type", "flow"),
	}, events[0].Attributes)
}

// Resources whose names would share an attribute are not merged.
func TestNamesThatWereOneAttribute(t *testing.T) {
	g, _ := newGuard(t)
	names := []string{"__other__", "\xff", "\xfe", strings.Repeat("a", 200)}
	for _, name := range names {
		names = append(names, series.Label(name))
	}
	for i, name := range names {
		for range i + 1 {
			require.NoError(t, g.Do(t.Context(), name, func(context.Context) error { return nil }))
		}
	}
	reader := sdkmetric.NewManualReader()
	unregister, err := penstockotel.Register(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)), g, penstockotel.Config{})
	require.NoError(t, err)
	var passed []int
	for key, value := range read(t, reader) {
		if strings.HasPrefix(key, "penstock.entries ") && strings.HasSuffix(key, "=pass") {
			n, err := strconv.Atoi(value)
			require.NoError(t, err)
			passed = append(passed, n)
		}
	}
	assert.ElementsMatch(t, []int{1, 2, 3, 4, 5, 6, 7, 8}, passed)
	require.NoError(t, unregister())
}
