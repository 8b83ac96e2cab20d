package sampler

import (
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/penstock-go/penstock/core/host"
	"github.com/penstock-go/penstock/internal/shared"
)

// Period is the time between two samples of the machine. Sampling starts with the first rule that
// needs a sample, and stops with the last.
const Period = 250 * time.Millisecond

// Unknown is the value of a [Reading] that has not been taken yet, or can't be taken. It exceeds no
// threshold.
const Unknown = -1

// Quantity is a metric of the machine.
type Quantity uint8

// The quantities.
const (
	MachineLoad Quantity = iota // the load average of the last minute
	MachineCPU                  // the used share of the available CPU time
	MemoryShare                 // the used share of the available memory
	MemoryBytes                 // the used memory in bytes
	quantities
)

// The sources of the quantities: memory is read once for both of its quantities.
const (
	sourceLoad = iota
	sourceCPU
	sourceMemory
	sources
)

var sourceNames = [sources]string{"load", "cpu", "memory"}

func (q Quantity) source() int { return min(int(q), sourceMemory) }

// Reading is the last sample of a quantity, [Unknown] or at least 0. It is safe for concurrent use.
type Reading struct {
	bits shared.Uint64 // of the float64
}

// Value returns the last sample.
func (r *Reading) Value() float64 { return math.Float64frombits(r.bits.Load()) }

// set treats NaN and values below 0 as unknown.
func (r *Reading) set(v float64) {
	if !(v >= 0) {
		v = Unknown
	}
	r.bits.Store(math.Float64bits(v))
}

// Engine has the functions of an engine.Engine that a sampler uses.
type Engine struct {
	Now    func() int64
	Every  func(period time.Duration, f func(now int64)) (stop func())
	Logger func() *slog.Logger
}

// Sampler samples the quantities that the rules of an engine need. All families share it, and it
// serves one rule set after another.
type Sampler struct {
	engine Engine
	source host.Source

	readings [quantities]Reading
	limit    shared.Int64 // of the memory, in bytes; 0 if not known

	served  []demand                  // guarded by the engine's Update
	demands shared.Pointer[[]*demand] // demands in served with quantities; nil if there are none
	stop    func()                    // guarded by the engine's Update
	mu      shared.Mutex              // held during a sample
	failing [sources]bool             // under mu
}

// demand lists the quantities that a family needs.
type demand struct {
	family fmt.Stringer
	wants  [sources]bool
	learn  func(now int64)
}

// New returns a sampler that runs on an engine and reads source; nil means the machine itself.
func New(source host.Source, engine Engine) *Sampler {
	if source == nil {
		source = host.Local("/")
	}
	s := &Sampler{engine: engine, source: source}
	for i := range s.readings {
		s.readings[i].set(Unknown)
	}
	return s
}

// Reading returns the reading of a quantity. It is not updated while no family needs the quantity.
func (s *Sampler) Reading(q Quantity) *Reading { return &s.readings[q] }

// MemoryLimit returns the available memory in bytes, or 0 if that is not known.
func (s *Sampler) MemoryLimit() int64 { return s.limit.Load() }

// Probe returns an error if a quantity can't be read on this machine. It is for rules that are
// about to be loaded, and is called inside the engine's Update.
func (s *Sampler) Probe(q Quantity) error {
	if s.wanted(q.source()) {
		return nil // it is already being read, and may fail occasionally
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.readLocked(q.source(), s.engine.Now())
}

func (s *Sampler) wanted(source int) bool {
	if demands := s.demands.Load(); demands != nil {
		for _, d := range *demands {
			if d.wants[source] {
				return true
			}
		}
	}
	return false
}

// Serve samples quantities for the rules of a family until it is called again for that family; with
// no quantities, it stops. After each sample the sampler calls learn, unless it is nil, and never
// concurrently. Call Serve when rules are about to be published; see BeforePublishing of
// engine.SnapshotBuilder.
func (s *Sampler) Serve(family fmt.Stringer, wants []Quantity, learn func(now int64)) {
	d := demand{family: family, learn: learn}
	for _, q := range wants {
		d.wants[q.source()] = true
	}
	s.served = append(slices.DeleteFunc(s.served, func(other demand) bool { return other.family == family }), d)
	var demands []*demand
	for _, d := range s.served {
		if d.wants != [sources]bool{} {
			demands = append(demands, &d)
		}
	}
	if len(demands) == 0 {
		s.demands.Store(nil)
		if s.stop != nil {
			s.stop()
			s.stop = nil
		}
		return
	}
	s.demands.Store(&demands)
	if s.stop == nil {
		s.stop = s.engine.Every(Period, s.sample)
	}
}

// Sample takes a sample immediately rather than at the next period. It is for tests and for sources
// that push their values.
func (s *Sampler) Sample() { s.sample(s.engine.Now()) }

// sample reads the needed quantities, and calls the families' learn.
func (s *Sampler) sample(now int64) {
	for _, report := range s.sampled(now) {
		report() // without a lock, because a log handler may load rules
	}
}

func (s *Sampler) sampled(now int64) (reports []func()) {
	demands := s.demands.Load()
	if demands == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for source := range sources {
		if s.wanted(source) {
			reports = append(reports, s.reread(source, now)...)
		}
	}
	for _, d := range *demands {
		if d.learn != nil {
			d.learn(now)
		}
	}
	return reports
}

// reread reads a source. While that fails, its quantities are unknown. The returned functions log
// the first failure and the recovery.
func (s *Sampler) reread(source int, now int64) (reports []func()) {
	err := s.readLocked(source, now)
	failing := err != nil
	if failing == s.failing[source] {
		return nil
	}
	s.failing[source] = failing
	log, name := s.engine.Logger(), sourceNames[source]
	if failing {
		return append(reports, func() {
			log.Error("penstock: machine metric unreadable: rules on it don't limit until it recovers",
				"metric", name, "error", err)
		})
	}
	return append(reports, func() { log.Info("penstock: machine metric readable again", "metric", name) })
}

// readLocked reads a source. The caller holds mu.
func (s *Sampler) readLocked(source int, now int64) (err error) {
	if source == sourceMemory {
		return s.readMemory(now)
	}
	q, read := MachineLoad, s.source.Load
	if source == sourceCPU {
		q, read = MachineCPU, s.source.CPU
	}
	v, err := read(now)
	if err != nil {
		v = Unknown
	}
	s.readings[q].set(v)
	return err
}

func (s *Sampler) readMemory(now int64) error {
	m, err := s.source.Memory(now)
	if err != nil {
		m = host.Memory{Used: Unknown}
	}
	s.limit.Store(max(0, m.Limit))
	s.readings[MemoryShare].set(m.Share())
	s.readings[MemoryBytes].set(float64(m.Used))
	return err
}
