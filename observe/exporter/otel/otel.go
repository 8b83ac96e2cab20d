// Package penstockotel exports a Guard's counts to OpenTelemetry: through asynchronous instruments,
// which read totals on collection, and as an event on the span of each refused call. It uses only
// the API; the program chooses the SDK and its exporters.
//
// The page docs/metrics.md lists the instruments.
package penstockotel

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/observe/exporter/internal/series"
	"github.com/penstock-go/penstock/slots"
)

// Config configures the instruments. The zero value suits most programs.
type Config struct {
	// MaxResources is the maximum number of resources with their own attributes; further ones are
	// counted together, as penstock.resource "__other__". 0 means 500.
	MaxResources int
}

const scope = "github.com/penstock-go/penstock/observe/exporter/otel"

// The attributes.
const (
	resourceKey = attribute.Key("penstock.resource")
	resultKey   = attribute.Key("penstock.result")
	typeKey     = attribute.Key("penstock.rule.type")
	ruleKey     = attribute.Key("penstock.rule")
	stateKey    = attribute.Key("penstock.state")
	quantileKey = attribute.Key("penstock.quantile")
	unitKey     = attribute.Key("penstock.unit")
)

// Register creates the instruments of a Guard, which are read until unregister is called.
//
//	unregister, err := penstockotel.Register(otel.GetMeterProvider(), guard, penstockotel.Config{})
//
// The instruments are
//
//	penstock.entries           {entry}    units that asked, by penstock.result: pass or block
//	penstock.errors            {entry}    units that completed with an error
//	penstock.entry.time        s          sum of the response times of completed calls
//	penstock.entry.completed   {call}     completed calls
//	penstock.entry.percentile  s          by penstock.quantile, if the Guard's Config.Percentiles is on
//	penstock.units             {unit}     units such as tokens, by penstock.unit and penstock.result: reserved,
//	                                      refunded, overdrawn, forgiven or refused
//	penstock.calls.uncosted    {call}     calls that named no cost in a penstock.unit that a rule counts
//	penstock.entries.active    {call}     calls that entered and have not exited
//	penstock.rule.refusals     {call}     calls that a rule refused, by penstock.rule and penstock.rule.type
//	penstock.rule.threshold    1          threshold of a flow, isolation or hotspot rule
//	penstock.breaker.state     1          1 for the breaker's current penstock.state
//	penstock.waiting           {call}     calls that sleep until a rule lets them run
//	penstock.internal.failures {failure}  panics of slots; the calls went on without the slot
func Register(provider metric.MeterProvider, guard *api.Guard, config Config) (unregister func() error, err error) {
	i := instruments{guard: guard, reader: series.NewReader(guard, config.MaxResources)}
	meter := provider.Meter(scope)
	var all []metric.Observable
	counter := func(to *metric.Int64ObservableCounter, name, unit, what string) {
		c, failed := meter.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(what))
		*to, all, err = c, append(all, c), errors.Join(err, failed)
	}
	gauge := func(to *metric.Float64ObservableGauge, name, unit, what string) {
		g, failed := meter.Float64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(what))
		*to, all, err = g, append(all, g), errors.Join(err, failed)
	}
	upDown := func(to *metric.Int64ObservableUpDownCounter, name, unit, what string) {
		c, failed := meter.Int64ObservableUpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(what))
		*to, all, err = c, append(all, c), errors.Join(err, failed)
	}
	counter(&i.entries, "penstock.entries", "{entry}", "Units that asked for a resource.")
	counter(&i.errors, "penstock.errors", "{entry}", "Units that completed with an error.")
	counter(&i.completed, "penstock.entry.completed", "{call}", "Calls that completed and have a response time.")
	counter(&i.units, "penstock.units", "{unit}", "Units such as tokens that calls reserved, gave back, used beyond that, or were refused.")
	counter(&i.uncosted, "penstock.calls.uncosted", "{call}", "Calls that have ended, and named no cost in a unit that a rule counts.")
	counter(&i.refusals, "penstock.rule.refusals", "{call}", "Calls that a rule has refused since it was loaded.")
	counter(&i.failures, "penstock.internal.failures", "{failure}", "Panics of slots; the calls went on without the slot.")
	gauge(&i.percentile, "penstock.entry.percentile", "s", "Percentiles of the response times of the last minute.")
	gauge(&i.threshold, "penstock.rule.threshold", "1", "Threshold of a rule.")
	gauge(&i.state, "penstock.breaker.state", "1", "1 for the current state of a breaker.")
	upDown(&i.active, "penstock.entries.active", "{call}", "Calls that entered and have not exited.")
	upDown(&i.waiting, "penstock.waiting", "{call}", "Calls that sleep until a rule lets them run.")
	time, failed := meter.Float64ObservableCounter("penstock.entry.time", metric.WithUnit("s"),
		metric.WithDescription("Sum of the response times of completed calls."))
	i.time, all, err = time, append(all, time), errors.Join(err, failed)
	if err != nil {
		return nil, fmt.Errorf("penstock: %w", err)
	}
	registration, err := meter.RegisterCallback(i.observe, all...)
	if err != nil {
		return nil, fmt.Errorf("penstock: %w", err)
	}
	return registration.Unregister, nil
}

type instruments struct {
	guard  *api.Guard
	reader *series.Reader

	entries, errors, completed, refusals, failures metric.Int64ObservableCounter
	units, uncosted                                metric.Int64ObservableCounter
	time                                           metric.Float64ObservableCounter
	percentile, threshold, state                   metric.Float64ObservableGauge
	active, waiting                                metric.Int64ObservableUpDownCounter
}

// observe reports the Guard's current counts.
func (i *instruments) observe(_ context.Context, o metric.Observer) error {
	with := func(attributes ...attribute.KeyValue) metric.ObserveOption {
		return metric.WithAttributeSet(attribute.NewSet(attributes...))
	}
	for _, r := range i.reader.Resources() {
		resource := resourceKey.String(r.Label)
		t, only := &r.Totals, with(resource)
		o.ObserveInt64(i.entries, t.Pass, with(resource, resultKey.String("pass")))
		o.ObserveInt64(i.entries, t.Block, with(resource, resultKey.String("block")))
		o.ObserveInt64(i.errors, t.Exception, only)
		o.ObserveInt64(i.completed, t.Timed(), only)
		o.ObserveFloat64(i.time, t.RT.Seconds(), only)
		o.ObserveInt64(i.active, r.InFlight, only)
		for _, u := range r.Units {
			for _, x := range series.UnitResults(u.Total) {
				o.ObserveInt64(i.units, x.Units, with(resource, unitKey.String(u.Unit), resultKey.String(x.Result)))
			}
			o.ObserveInt64(i.uncosted, u.Total.Uncosted, with(resource, unitKey.String(u.Unit)))
		}
		if p := &r.Percentiles; p.Count > 0 {
			o.ObserveFloat64(i.percentile, p.P50.Seconds(), with(resource, quantileKey.Float64(0.5)))
			o.ObserveFloat64(i.percentile, p.P95.Seconds(), with(resource, quantileKey.Float64(0.95)))
			o.ObserveFloat64(i.percentile, p.P99.Seconds(), with(resource, quantileKey.Float64(0.99)))
		}
	}
	for _, f := range i.guard.RuleStats() {
		o.ObserveInt64(i.refusals, f.Refused, with(ruleKey.String(series.Label(f.ID)), typeKey.String(f.Kind.String())))
	}
	for _, t := range i.reader.Thresholds() {
		o.ObserveFloat64(i.threshold, t.Value, with(resourceKey.String(t.Resource), ruleKey.String(t.Rule), typeKey.String(t.Type)))
	}
	for _, b := range i.guard.Breakers() {
		if resource := i.reader.LabelOf(b.Resource); resource != series.Other {
			o.ObserveFloat64(i.state, 1, with(resourceKey.String(resource), ruleKey.String(series.Label(b.Rule)), stateKey.String(b.State.String())))
		}
	}
	o.ObserveInt64(i.waiting, i.guard.Waiting())
	o.ObserveInt64(i.failures, i.guard.Failures())
	return nil
}

// Spans is a slot that adds an event to the span of a refused call, so that a trace shows why the
// expected child span is missing. Add it to a Guard's chain:
//
//	api.New(api.Config{Chain: slots.Default().With(penstockotel.Spans{}, slots.After("log"))})
//
// The event is "penstock.blocked", with error.type "penstock.blocked.flow" and the like,
// penstock.resource, penstock.rule and penstock.rule.type. It has no argument values and no
// callers. A call without a recording span costs next to nothing.
type Spans struct{}

// Name returns "spans".
func (Spans) Name() string { return "spans" }

// Blocked adds the event.
func (Spans) Blocked(c slots.Call, b *core.BlockError) {
	span := trace.SpanFromContext(c.Context())
	if !span.IsRecording() {
		return
	}
	span.AddEvent("penstock.blocked", trace.WithAttributes(
		attribute.String("error.type", "penstock.blocked."+b.Kind.String()),
		resourceKey.String(series.Label(c.Resource())),
		ruleKey.String(series.Label(b.Rule)),
		typeKey.String(b.Kind.String()),
	))
}
