package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// sources watches files and loads rules by hand at the same time. Only one of them may
// have its way, and the others must hear whose it is; what is reported as loaded must be in
// force; and a watch that has ended must do nothing, and leave nothing behind.
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

// reloaded is told of every outcome, and looks whether what is told as loaded is in force.
func (s *sourceRound) reloaded(reload rules.Reload) {
	if reload.Err == nil {
		text, err := os.ReadFile(reload.Path)
		if set, wrong := rules.Parse(reload.Path, text); err == nil && wrong == nil {
			if in, file := say(s.guard.Rules()), say(set); in != file {
				s.mu.Lock()
				s.broken = errors.Join(s.broken, fmt.Errorf("told as loaded:\n%s\nin force:\n%s", file, in))
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

// distinct returns rules that no others are equal to, with their defaults written out.
func (s *sourceRound) distinct() rules.Set {
	s.files++
	rule, err := flow.Rule{ID: fmt.Sprint("rule ", s.files), Resource: "orders", Threshold: float64(s.files)}.Normalized(3)
	if err != nil {
		panic(err)
	}
	return rules.Set{Flow: []flow.Rule{rule}}
}

// refused checks that a source was refused in the name of the file that is watched.
func refused(what, path string, err error) error {
	switch {
	case err == nil:
		return fmt.Errorf("%s is accepted while %s is watched", what, path)
	case !strings.Contains(err.Error(), path):
		return fmt.Errorf("%s is refused while %s is watched, and doesn't say so: %w", what, path, err)
	}
	return nil
}

func (s *sourceRound) play() error {
	first := s.distinct()
	path := s.file(first)
	ctx, end := context.WithCancel(s.ctx)
	defer end()
	if err := s.guard.WatchRules(ctx, path); err != nil {
		return err
	}
	other := s.file(s.distinct())
	tries := map[string]func() error{
		"a second watch":     func() error { return s.guard.WatchRules(s.ctx, other) },
		"a load by hand":     func() error { return s.guard.LoadRules(s.distinct()) },
		"a load from a file": func() error { return s.guard.LoadRulesFile(other) },
	}
	for what, try := range tries {
		s.offered.Add(1)
		s.checked.Add(2)
		if err := refused(what, path, try()); err != nil {
			return err
		}
		if in := say(s.guard.Rules()); in != say(first) {
			return fmt.Errorf("%s was refused, and these are in force:\n%s", what, in)
		}
	}
	second := s.distinct()
	for _, next := range []rules.Set{second, first} { // there and back
		s.write(path, next)
		s.offered.Add(1)
		if err := s.await(next); err != nil {
			return err
		}
	}
	end()
	mine := s.distinct()
	if err := s.guard.LoadRules(mine); err != nil {
		return fmt.Errorf("the watch has ended, and a load is refused: %w", err)
	}
	s.write(path, second)
	if err := s.guard.WatchRules(s.ctx, other); err != nil {
		return fmt.Errorf("the watch has ended, and another one is refused: %w", err)
	}
	s.checked.Add(2)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.broken
}

// await returns when rules are in force.
func (s *sourceRound) await(set rules.Set) error {
	want, limit := say(set), time.After(20*time.Second)
	for say(s.guard.Rules()) != want {
		select {
		case <-s.reloads:
		case <-limit:
			return fmt.Errorf("a file was written 20 s ago, and not loaded:\n%s", want)
		}
	}
	s.checked.Add(1)
	return nil
}
