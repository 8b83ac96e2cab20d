package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// sources watches files and loads rules by hand at the same time. All rules must be in effect
// together; a source with an id of another one must be refused with the name of its owner; rules
// reported as loaded must be in effect; and a watch that has ended must do nothing, and leave
// nothing behind.
func sources(r *round) error {
	switch r.IntN(6) {
	case 0, 1:
		return manyWatches(r)
	case 2, 3:
		return byHand(r)
	}
	s := &sourceRound{round: r, dir: r.folder(), reloads: make(chan rules.Reload, 100)}
	s.guard, _ = r.bareGuard(api.Config{})
	s.guard.OnReload(s.reloaded)
	return s.play()
}

type sourceRound struct {
	*round
	guard   *api.Guard
	dir     string
	files   int
	reloads chan rules.Reload

	mu     sync.Mutex
	broken error
}

// reloaded receives every outcome, and checks that rules reported as loaded are in effect.
func (s *sourceRound) reloaded(reload rules.Reload) {
	if reload.Err == nil {
		text, err := os.ReadFile(reload.Source)
		if set, wrong := rules.Parse(reload.Source, text); err == nil && wrong == nil {
			if in, file := s.guard.Rules(), say(set); !holds(in, set) {
				s.mu.Lock()
				s.broken = errors.Join(s.broken, fmt.Errorf("reported as loaded:\n%s\nin effect:\n%s", file, say(in)))
				s.mu.Unlock()
			}
		}
	}
	s.reloads <- reload
}

// file writes rules into a new file.
func (s *sourceRound) file(set rules.Set) (path string) {
	s.files++
	path = filepath.Join(s.dir, fmt.Sprintf("rules%d.yaml", s.files))
	s.write(path, set)
	return path
}

// write puts rules into a file, all at once.
func (s *sourceRound) write(path string, set rules.Set) {
	if err := os.WriteFile(path+".new", []byte(say(set)), 0o600); err != nil {
		panic(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		panic(err)
	}
}

// distinct returns rules unequal to all others, with their defaults written out.
func (s *sourceRound) distinct() rules.Set {
	s.files++
	rule, err := flow.Rule{ID: fmt.Sprint("rule ", s.files), Resource: "orders", Threshold: float64(s.files)}.Normalized(3)
	if err != nil {
		panic(err)
	}
	return rules.Set{Flow: []flow.Rule{rule}}
}

// holds reports whether all contains every flow rule of some.
func holds(all, some rules.Set) bool {
	for _, rule := range some.Flow {
		if !slices.ContainsFunc(all.Flow, func(r flow.Rule) bool { return spec.Equal(r, rule) }) {
			return false
		}
	}
	return true
}

// together returns a set of the rules of all, in their order.
func together(all ...rules.Set) (sum rules.Set) {
	for _, set := range all {
		sum.Flow = append(sum.Flow, set.Flow...)
	}
	return sum
}

// refused checks that a source was refused with the name of the file that it conflicts with.
func refused(what, path string, err error) error {
	switch {
	case err == nil:
		return fmt.Errorf("%s is accepted while %s is watched", what, path)
	case !strings.Contains(err.Error(), path):
		return fmt.Errorf("%s is refused while %s is watched, but the error doesn't say so: %w", what, path, err)
	}
	return nil
}

func (s *sourceRound) play() error {
	first, beside, mine := s.distinct(), s.distinct(), s.distinct()
	path, other := s.file(first), s.file(beside)
	ctx, end := context.WithCancel(s.ctx)
	defer end()
	if err := s.guard.WatchRules(ctx, path); err != nil {
		return err
	}
	if err := s.guard.WatchRules(s.ctx, other); err != nil {
		return err
	}
	if err := s.guard.LoadRules(mine); err != nil {
		return err
	}
	all := together(first, beside, mine)
	clash := s.distinct()
	clash.Flow[0].ID = first.Flow[0].ID
	second := s.file(clash)
	tries := map[string]func() error{
		"a second watch of it":       func() error { return s.guard.WatchRules(s.ctx, path) },
		"a watch with an id of it":   func() error { return s.guard.WatchRules(s.ctx, second) },
		"a load with an id of it":    func() error { return s.guard.LoadRules(clash) },
		"a file with an id of it":    func() error { return s.guard.LoadRulesFile(second) },
		"two watches, one with such": func() error { return s.guard.WatchRules(s.ctx, s.file(s.distinct()), second) },
	}
	for what, try := range tries {
		s.offered.Add(1)
		s.checked.Add(2)
		if err := refused(what, path, try()); err != nil {
			return err
		}
		if in := say(s.guard.Rules()); in != say(all) {
			return fmt.Errorf("%s was refused, but these rules are in effect:\n%s", what, in)
		}
	}
	next := s.distinct()
	for _, file := range []rules.Set{next, first} { // there and back
		s.write(path, file)
		s.offered.Add(1)
		if err := s.await(together(file, beside, mine)); err != nil {
			return err
		}
	}
	end()
	if err := s.guard.LoadRules(mine); err != nil {
		return fmt.Errorf("the watch has ended, but a load is refused: %w", err)
	}
	s.write(path, next)
	if in := say(s.guard.Rules()); in != say(together(beside, mine)) {
		return fmt.Errorf("a watch has ended and rules were loaded, but these are in effect:\n%s", in)
	}
	if err := s.guard.WatchRules(s.ctx, second); err != nil {
		return fmt.Errorf("the watch has ended, but another one with its ids is refused: %w", err)
	}
	s.checked.Add(3)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.broken
}

// await returns when rules are in effect.
func (s *sourceRound) await(set rules.Set) error {
	want, limit := say(set), time.After(20*time.Second)
	for say(s.guard.Rules()) != want {
		select {
		case <-s.reloads:
		case <-limit:
			return fmt.Errorf("a file was written 20 s ago, but has not been loaded:\n%s", want)
		}
	}
	s.checked.Add(1)
	return nil
}
