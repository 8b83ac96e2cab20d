package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// byHand watches a file for a guard without the guard's knowledge, as [rules.Watch] allows, and
// loads other rules by hand in between. The file alternates between its old contents, other rules
// and errors. Everything reported as loaded must be in effect.
func byHand(r *round) error {
	s := &sourceRound{round: r, dir: r.folder(), reloads: make(chan rules.Reload, 100)}
	s.guard, _ = r.bareGuard(api.Config{})
	files := []rules.Set{s.distinct(), s.distinct()}
	path := s.file(files[0])
	refuses := false // the user's function for applying rules; for the watch between two writes
	apply := func(set rules.Set) error {
		if refuses {
			return errBroken
		}
		return s.guard.LoadRules(set)
	}
	w, err := rules.Watch(s.ctx, path, apply, rules.WatchConfig{Logger: silent, OnReload: s.reloaded})
	if err != nil {
		return err
	}
	defer w.Close()
	<-s.reloads
	holds := "rules 0"
	for range 3 + s.IntN(4) {
		if s.one(2) {
			if err := s.guard.LoadRules(s.distinct()); err != nil {
				return err
			}
			s.step("other rules are loaded by hand")
		}
		next := pick(s.round, "rules 0", "rules 0", "rules 1", "nonsense", "wrong", "refused")
		if next == holds {
			continue // unchanged, so not reported
		}
		holds, refuses = next, next == "refused"
		switch next {
		case "rules 0":
			s.write(path, files[0])
		case "rules 1":
			s.write(path, files[1])
		case "nonsense":
			err = os.WriteFile(path, []byte("flow: 1"), 0o600)
		case "wrong":
			s.write(path, rules.Set{Flow: []flow.Rule{{ID: "wrong", Resource: "orders", Threshold: -1}}})
		default:
			s.write(path, s.distinct())
		}
		if err != nil {
			return err
		}
		s.offered.Add(1)
		s.step("the file now holds %s", next)
		if err := s.reported(next); err != nil {
			return err
		}
	}
	return nil
}

// reported waits for the outcome of a write, and checks it.
func (s *sourceRound) reported(holds string) error {
	ctx, cancel := context.WithTimeout(s.ctx, 20*time.Second)
	defer cancel()
	select {
	case <-ctx.Done():
		return fmt.Errorf("a file has held %s for 20 s, but no reload was reported", holds)
	case reload := <-s.reloads:
		good := holds == "rules 0" || holds == "rules 1"
		if good != (reload.Err == nil) {
			return fmt.Errorf("the file holds %s, but the report is: %s", holds, fate(reload.Err))
		}
	}
	s.checked.Add(2)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.broken
}
