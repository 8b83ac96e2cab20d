// Llm shows a proxy in front of a language model: calls reserve tokens and money before their cost is
// known, ask for more if an answer gets long, and settle what they used, also if the answer breaks off or
// the client leaves.
//
//	go run ./examples/llm
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"math/rand/v2"
	"os"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
)

const (
	chat     = "POST /chat"
	estimate = 500 // tokens that an answer reserves
)

var limits = []flow.Rule{
	{ID: "calls", Resource: chat, Threshold: 60, Interval: time.Minute},
	{ID: "in", Resource: chat, Unit: "in", Threshold: 90_000, Interval: time.Minute},
	{ID: "out", Resource: chat, Unit: "out", Threshold: 30_000, Interval: time.Minute},
	{ID: "budget", Resource: chat, Unit: "microUSD", Threshold: 4_500_000, Interval: 24 * time.Hour},
	{ID: "gold", Resource: chat, Origin: "gold", Unit: "out", Threshold: 22_000, Interval: time.Minute},
	{ID: "others", Resource: chat, Origin: flow.OriginOther, Unit: "out", Threshold: 9_000, Interval: time.Minute},
}

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(w io.Writer) error {
	clock := api.NewManualClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	guard, err := api.New(api.Config{Clock: clock, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer guard.Close()
	if err := guard.LoadRules(api.RuleSet{Flow: limits}); err != nil {
		return err
	}
	p := &proxy{guard: guard, bills: map[string]*usage{"gold": {}, "free": {}}, ends: map[string]int{}}
	t := &traffic{proxy: p, random: rand.New(rand.NewPCG(1, 2))}
	fmt.Fprintln(w, "                                         refused by rule")
	fmt.Fprintln(w, "minute  answered  cut off  broken  left  calls  out  gold  others  budget")
	for minute := range 10 {
		for range time.Minute / tick {
			t.tick(minute < 9) // in the last minute nobody comes
			clock.Advance(tick)
		}
		n := p.ends
		fmt.Fprintf(w, "%6d  %8d  %7d  %6d  %4d  %5d  %3d  %4d  %6d  %6d\n", minute+1, n["answered"],
			n["cut off"], n["broken"], n["left"], n["calls"], n["out"], n["gold"], n["others"], n["budget"])
		clear(n)
	}

	fmt.Fprintln(w, "unit      reserved     used  given back  overdrawn  refused     gold     free")
	for i, u := range guard.UnitStats(chat) {
		n := u.Total
		fmt.Fprintf(w, "%-8s  %8d  %7d  %10d  %9d  %7d  %7d  %7d\n", u.Unit,
			n.Reserved, n.Used(), n.Refunded, n.Overdrawn, n.Refused, p.bills["gold"][i], p.bills["free"][i])
	}
	return nil
}

// usage has numbers of these units, in this order.
type usage [3]int64

var units = [3]string{"in", "out", "microUSD"}

// of prices tokens: 3 dollars for a million of the prompt's, 15 for the answer's.
func of(in, out int64) usage { return usage{in, out, 3*in + 15*out} }

// proxy passes chats on to a model.
type proxy struct {
	guard *api.Guard
	bills map[string]*usage // by tenant
	ends  map[string]int    // the number of calls, by how they ended
}

var errCut = errors.New("the answer is cut off")

// chat guards one call of the model.
func (p *proxy) chat(ctx context.Context, tenant string, r request) (err error) {
	reserved := of(r.prompt, estimate)
	e, err := p.guard.Entry(api.WithOrigin(ctx, tenant), chat,
		api.Cost("in", reserved[0]), api.Cost("out", reserved[1]), api.Cost("microUSD", reserved[2]))
	if err != nil {
		return err
	}
	defer e.ExitOn(&err)
	var meters [len(units)]*api.Meter
	for i, unit := range units {
		meters[i] = api.NewMeter(e, unit)
		defer func() { // before ExitOn, however the call ends
			meters[i].Settle()
			p.bills[tenant][i] += meters[i].Used()
		}()
	}
	use := func(n usage) (err error) {
		for i, m := range meters {
			err = cmp.Or(err, m.Add(ctx, n[i])) // each counts, even if one has no room for more
		}
		return err
	}
	if err := use(of(r.counted, 0)); err != nil {
		return fmt.Errorf("%w: %w", errCut, err)
	}
	for tokens, err := range r.answer(ctx) {
		if err != nil {
			return err // the tokens that came are charged
		}
		if err := use(of(0, tokens)); err != nil {
			return fmt.Errorf("%w: %w", errCut, err) // these are charged as well
		}
	}
	return nil
}

// count counts how a call has ended.
func (p *proxy) count(err error) {
	var refusal *api.BlockError
	switch {
	case err == nil:
		p.ends["answered"]++
	case errors.Is(err, errCut):
		p.ends["cut off"]++
	case errors.As(err, &refusal):
		p.ends[refusal.Rule]++
	case errors.Is(err, errBroken):
		p.ends["broken"]++
	default:
		p.ends["left"]++
	}
}
