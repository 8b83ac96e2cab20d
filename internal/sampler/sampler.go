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

// Unknown is a [Reading] that was not taken yet, or can't be taken. It is above no threshold.
const Unknown = -1

// Quantity is something that can be read off the machine.
type Quantity uint8

// The quantities.
const (
	MachineLoad Quantity = iota // the load average of the last minute
	MachineCPU                  // the used share of the CPU time that may be used
	MemoryShare                 // the used share of the memory that may be used
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

// Reading is a quantity as of the last sample, [Unknown] or at least 0. It is safe for
// concurrent use.
type Reading struct {
	bits shared.Uint64 // of the float64
}

// Value is the reading.
func (r *Reading) Value() float64 { return math.Float64frombits(r.bits.Load()) }

// set treats NaN and values below 0 as unknown.
func (r *Reading) set(v float64) {
	if !(v >= 0) {
		v = Unknown
	}
	r.bits.Store(math.Float64bits(v))
}

// Engine is what a sampler runs on: the functions of an engine.Engine.
type Engine struct {
	Now    func() int64
	Every  func(period time.Duration, f func(now int64)) (stop func())
	Logger func() *slog.Logger
}

// Sampler reads off the machine what the rules of an engine need, as long as any does. All families
// share it, and it serves one rule set after another.
type Sampler struct {
	engine Engine
	source host.Source

	readings [quantities]Reading
	limit    shared.Int64 // of the memory, in bytes; 0 if not known

	served  []demand                  // guarded by the engine's Update
	demands shared.Pointer[[]*demand] // those of served that want something; nil if there are none
	stop    func()                    // guarded by the engine's Update
	mu      shared.Mutex              // held during a sample
	failing [sources]bool             // under mu
}

// demand is what a family wants sampled.
type demand struct {
	family fmt.Stringer
	wants  [sources]bool
	learn  func(now int64)
}

// New returns a sampler of a source, nil for the machine itself, that runs on an engine.
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

// Reading is where the samples of a quantity can be read. It stands still while no family wants the
// quantity.
func (s *Sampler) Reading(q Quantity) *Reading { return &s.readings[q] }

// MemoryLimit is how much memory may be used, in bytes, 0 if that is not known.
func (s *Sampler) MemoryLimit() int64 { return s.limit.Load() }

// Probe returns why a quantity can't be read here, nil if it can. It is for rules that are about to
// be loaded, inside the engine's Update.
func (s *Sampler) Probe(q Quantity) error {
	if s.wanted(q.source()) {
		return nil // it is already being read, and may fail now and then
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
// no quantities, it stops. After each sample it calls learn, if not nil, never concurrently. Call
// Serve when rules are about to be published, see BeforePublishing of engine.SnapshotBuilder.
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

// Sample reads what rules want of the machine now rather than at the next sample. It is for tests
// and for sources that are pushed.
func (s *Sampler) Sample() { s.sample(s.engine.Now()) }

// sample reads what is wanted, and lets the rules learn from it.
func (s *Sampler) sample(now int64) {
	for _, tell := range s.sampled(now) {
		tell() // under no lock, as a log handler may load rules
	}
}

func (s *Sampler) sampled(now int64) (news []func()) {
	demands := s.demands.Load()
	if demands == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for source := range sources {
		if s.wanted(source) {
			news = append(news, s.reread(source, now)...)
		}
	}
	for _, d := range *demands {
		if d.learn != nil {
			d.learn(now)
		}
	}
	return news
}

// reread reads a source. While that fails its quantities are unknown; the log says when that begins
// and ends.
func (s *Sampler) reread(source int, now int64) (news []func()) {
	err := s.readLocked(source, now)
	failing := err != nil
	if failing == s.failing[source] {
		return nil
	}
	s.failing[source] = failing
	log, name := s.engine.Logger(), sourceNames[source]
	if failing {
		return append(news, func() {
			log.Error("penstock: can't be read; no rule limits by it until it can", "metric", name, "error", err)
		})
	}
	return append(news, func() { log.Info("penstock: can be read again", "metric", name) })
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
