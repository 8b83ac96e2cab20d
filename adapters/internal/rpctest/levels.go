package rpctest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/api"
)

// byLevel has a rule that counts the calls of each level.
var byLevel = api.RuleSet{Adaptive: []adaptive.Rule{{Resource: every, Match: api.MatchRegex, Shed: api.ShedLevels}}}

// levels are the cases of the criticality of calls.
func levels() []Case {
	return []Case{
		{Name: "a client sends the level on, up to a bound", ServerOpts: Options{Levels: true, AtMost: api.Critical}, Server: byLevel,
			Unary: hasLevel(true), Run: func(s *Stage) error {
				if s.NoClients != "" {
					return nil
				}
				return errors.Join(s.callsAt(api.Sheddable, api.CriticalPlus, api.SheddablePlus), s.call(), s.offered(0, 2, 1, 1))
			}},
		{Name: "a stream has the level too", ServerOpts: Options{Levels: true, AtMost: api.CriticalPlus}, Server: byLevel, OfStream: true, Run: func(s *Stage) error {
			if s.NoClients != "" || s.client.Stream == nil {
				return nil
			}
			stream, err := s.client.Stream(api.WithCriticality(s.ctx, api.CriticalPlus))
			if err != nil {
				return err
			}
			return errors.Join(stream.toEnd(), s.offered(1, 0, 0, 0))
		}},
		{Name: "no level is read by default", Server: byLevel, Unary: hasLevel(false), Run: func(s *Stage) error {
			return errors.Join(s.callsAt(api.Sheddable, api.CriticalPlus), s.offered(0, 2, 0, 0))
		}},
	}
}

// hasLevel returns a handler that fails unless its context has a level, or has none.
func hasLevel(want bool) func(*Stage, context.Context) error {
	return func(s *Stage, ctx context.Context) error {
		if level, given := api.CriticalityOf(ctx); given != want {
			return s.Error(Internal, fmt.Sprintf("the context has the level %v: %v", level, given))
		}
		return nil
	}
}

// callsAt makes a call of each level.
func (s *Stage) callsAt(levels ...api.Level) (err error) {
	for _, level := range levels {
		err = errors.Join(err, s.client.Unary(api.WithCriticality(s.ctx, level)))
	}
	return err
}

// offered compares the numbers of calls that the server's rule has judged, by level.
func (s *Stage) offered(want ...int64) error {
	var got []int64
	for _, f := range s.of[server].RuleStats() {
		if f, ok := f.Details.(adaptive.Stats); ok {
			for _, level := range f.Levels {
				got = append(got, level.Offered)
			}
		}
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("the levels are %v, not %v", got, want)
	}
	return nil
}
