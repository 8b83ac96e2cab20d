package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// rate is a number of calls per time, such as 150/s.
type rate struct {
	perSecond float64
	text      string
}

func (r *rate) String() string { return r.text }
func (r *rate) Type() string   { return "calls/time" }

func (r *rate) Set(s string) error {
	number, unit, _ := strings.Cut(s, "/")
	calls, err := strconv.ParseFloat(number, 64)
	if err != nil || !(calls > 0) || math.IsInf(calls, 0) { // NaN is not more than 0
		return fmt.Errorf("use calls per time, such as 150/s, 9000/m or 1/10s")
	}
	after := unit
	if unit == "" {
		unit = "s"
	}
	if unit[0] < '0' || unit[0] > '9' {
		unit = "1" + unit
	}
	d, err := time.ParseDuration(unit)
	if err != nil || d <= 0 {
		return fmt.Errorf("%q is not a unit of time: use calls per time, such as 150/s, 9000/m or 1/10s", after)
	}
	*r = rate{calls / d.Seconds(), s}
	return nil
}

// share is a part of all calls, such as 10% or 0.1.
type share struct {
	of   float64
	text string
}

func (s *share) String() string { return s.text }
func (s *share) Type() string   { return "share" }

func (s *share) Set(text string) error {
	number, percent := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= 0 && v <= 1) {
		return fmt.Errorf("use a share from 0%% to 100%%, such as 10%% or 0.1")
	}
	*s = share{v, text}
	return nil
}

// arguments are the values of --arg, such as user=alice or 0=42.
type arguments struct{ list []argument }

func (a *arguments) String() string { return "" }
func (a *arguments) Type() string   { return "K=V" }

// mostArgs limits the index of an argument.
const mostArgs = 100

func (a *arguments) Set(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return fmt.Errorf("use a name or a number from 0, and a value, such as user=alice or 0=42")
	}
	if i, err := strconv.Atoi(name); err == nil && (i < 0 || i >= mostArgs) {
		return fmt.Errorf("arguments are numbered from 0 to %d", mostArgs-1)
	}
	a.add(name, argumentValue(value))
	return nil
}

func (a *arguments) add(name string, value any) {
	i := slices.IndexFunc(a.list, func(b argument) bool { return b.name == name })
	if i < 0 {
		i, a.list = len(a.list), append(a.list, argument{name: name})
	}
	a.list[i].values = append(a.list[i].values, value)
}

// costs are the values of --cost, such as tokens=1200.
type costs struct{ arguments }

func (c *costs) Type() string { return "U=N" }

func (c *costs) Set(text string) error {
	unit, value, _ := strings.Cut(text, "=")
	n, err := strconv.ParseInt(value, 10, 64)
	if unit == "" || err != nil || n < 1 {
		return fmt.Errorf("use a unit and a whole number from 1, such as tokens=1200")
	}
	c.add(unit, n)
	return nil
}

// argumentValue parses a value as in a rule file: a number, true or false, or text, which may be
// quoted.
func argumentValue(s string) any {
	if text, err := strconv.Unquote(s); err == nil && s[0] == '"' {
		return text
	}
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		return i
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
		return f
	}
	switch s {
	case "true":
		return true
	case "false":
		return false
	}
	return s
}

// callerFlags are the flags for the caller, its arguments, and the machine.
type callerFlags struct {
	caller
	args        arguments
	costs       costs
	busy        machine
	cpu, memory share
}

func (f *callerFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.origin, "origin", "", "the caller's `name`")
	flags.StringVar(&f.context, "context", "", "`name` of the context, for rules with relation chain")
	flags.Var(&f.args, "arg", "an argument, by its name or its number from 0")
	flags.IntVar(&f.units, "units", 1, "units that a call takes")
	flags.Var(&f.costs, "cost", "what a call costs, such as tokens=1200")
	flags.StringArrayVar(&f.endpoints, "endpoint", nil, "`address` of the server of a call")
	flags.BoolVar(&f.internal, "internal", false, "not inbound: no system rules")
	flags.Var(&f.cpu, "cpu", "CPU use of the machine, such as 90%")
	flags.Float64Var(&f.busy.load, "load", 0, "load of the machine")
	flags.Var(&f.memory, "memory", "memory in use, such as 80%")
}

// of returns the values of the flags.
func (f *callerFlags) of() (caller, machine, error) {
	f.caller.args, f.caller.costs = f.args.list, f.costs.list
	f.busy.cpu, f.busy.memory = f.cpu.of, f.memory.of
	switch {
	case f.units < 1:
		return f.caller, f.busy, fmt.Errorf("--units is %d: a call takes at least 1", f.units)
	case f.busy.load < 0:
		return f.caller, f.busy, fmt.Errorf("--load is %v: use 0 or more", f.busy.load)
	}
	return f.caller, f.busy, nil
}

// short formats a duration for people.
func short(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		d = d.Round(time.Second)
	case d >= time.Second:
		d = d.Round(10 * time.Millisecond)
	case d >= 10*time.Millisecond:
		d = d.Round(time.Millisecond)
	case d >= time.Millisecond:
		d = d.Round(10 * time.Microsecond)
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
