package system

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/shared"
)

// SamplePeriod is the time between two samples of load and CPU use. Sampling starts
// with the first rule that wants to know, and stops with the last.
const SamplePeriod = 250 * time.Millisecond

// Source tells how busy the machine is. It is asked every [SamplePeriod], never twice
// at once.
type Source interface {
	// Load is the load average of the last minute. Below 0 it is not known yet.
	Load(now int64) (float64, error)
	// CPU is the share of the CPU time that may be used which was used, 0 to 1. Below
	// 0 it is not known yet.
	CPU(now int64) (float64, error)
}

// unknown is a reading that nothing is above.
const unknown = -1

// machine is what the system rules of an engine know of the machine they run on. It
// serves one rule set after the other.
type machine struct {
	engine *core.Engine
	source Source

	load, cpu reading

	gates shared.Pointer[[]*gate] // those that want to know; nil while nobody does
	stop  func()                  // guarded by Engine.Update
	mu    shared.Mutex            // held during a sample
}

// reading is one value that is sampled.
type reading struct {
	bits    shared.Uint64 // of the float64
	failing bool          // under machine.mu
}

func (r *reading) load() float64   { return math.Float64frombits(r.bits.Load()) }
func (r *reading) store(v float64) { r.bits.Store(math.Float64bits(v)) }

func newMachine(e *core.Engine, source Source) *machine {
	m := &machine{engine: e, source: source}
	m.load.store(unknown)
	m.cpu.store(unknown)
	return m
}

// of is the reading that a metric is about.
func (m *machine) of(metric Metric) (*reading, func(now int64) (float64, error)) {
	if metric == Load {
		return &m.load, m.source.Load
	}
	return &m.cpu, m.source.CPU
}

// probe says why a metric can't be read here, if it can't.
func (m *machine) probe(metric Metric) error {
	if m.gates.Load() != nil {
		return nil // it is being read, and if that fails now and then, so be it
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r, read := m.of(metric)
	v, err := read(m.engine.Now())
	if err != nil {
		return core.BadField("metric", "%s can't be read here: %v; use concurrency, qps or rt on such a machine", metric, err)
	}
	r.set(v)
	return nil
}

// set takes a reading that is no number for one that is not known.
func (r *reading) set(v float64) {
	if !(v >= 0) {
		v = unknown
	}
	r.store(v)
}

// serve has the machine sampled for these rules, until it is called again. It is
// called by one goroutine at a time.
func (m *machine) serve(gates []*gate) {
	if len(gates) == 0 {
		m.gates.Store(nil)
		if m.stop != nil {
			m.stop()
			m.stop = nil
		}
		return
	}
	m.gates.Store(&gates)
	if m.stop == nil {
		m.stop = m.engine.Every(SamplePeriod, m.sample)
	}
}

// sample reads what the rules want to know, and has them learn from it.
func (m *machine) sample(now int64) {
	for _, tell := range m.sampled(now) {
		tell() // under no lock: who reads the log may load rules
	}
}

func (m *machine) sampled(now int64) (news []func()) {
	gates := m.gates.Load()
	if gates == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var done [2]bool
	for _, g := range *gates {
		if i := g.rule.Metric - Load; !done[i] {
			done[i] = true
			news = append(news, m.read(g.rule.Metric, now)...)
		}
		g.learn(now)
	}
	return news
}

// read reads a metric. While that fails it is not known, and rules on it admit
// everything; the log says when that begins and ends.
func (m *machine) read(metric Metric, now int64) (news []func()) {
	r, read := m.of(metric)
	v, err := read(now)
	if err != nil {
		v = unknown
	}
	r.set(v)
	failing := err != nil
	if failing == r.failing {
		return nil
	}
	r.failing = failing
	log := m.engine.Logger()
	if failing {
		return append(news, func() {
			log.Error("penstock: can't be read; system rules on it admit every call", "metric", metric.String(), "error", err)
		})
	}
	return append(news, func() { log.Info("penstock: can be read again", "metric", metric.String()) })
}
