package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/penstock-go/penstock/rules"
)

// The exit codes of diff, like those of diff(1).
const (
	exitDifferent = 1
	exitTrouble   = 2
)

func (c *command) diff() *cobra.Command {
	var how together
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Show which rules differ between two files",
		Long: `Diff shows the rules in which two files or directories differ, one per line:
+ added, ~ changed, with the fields, - removed. Rules are matched by their ids,
or by their fields if they have none. Files with the same meaning do not differ:
dialects, comments, order, and written-out defaults don't matter.

Exit code: 0 if nothing differs, 1 if something does, 2 for errors.`,
		Example: `  penstock diff old.yaml new.yaml
  git show HEAD:rules.yaml | penstock diff - rules.yaml`,
		Args:              args(2, 2, "two files or directories"),
		ValidArgsFunction: ruleFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == stdin && args[1] == stdin {
				return usage(cmd, errors.New("only one of the two can be standard input"))
			}
			old, err := c.load(args[:1], how)
			if err != nil {
				return trouble(err)
			}
			new, err := c.load(args[1:], how)
			if err != nil {
				return trouble(err)
			}
			change := rules.Diff(old, new)
			if asJSON {
				err = writeJSON(c.out, jsonChange(change))
			} else {
				err = c.writeChange(change)
			}
			if err == nil && !change.Empty() {
				err = exit(exitDifferent)
			}
			return err
		},
	}
	how.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	check := cmd.Args
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		c.trouble = exitTrouble
		return check(cmd, args)
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		c.trouble = exitTrouble
		return usage(cmd, err)
	})
	return cmd
}

// trouble returns an error that makes diff exit with exitTrouble.
func trouble(err error) error {
	if _, reported := errors.AsType[exit](err); reported {
		return exit(exitTrouble)
	}
	return err
}

func (c *command) writeChange(change rules.Change) error {
	if change.Empty() {
		return nil
	}
	colors := map[byte]string{'+': green, '~': yellow, '-': red}
	var b strings.Builder
	for _, line := range change.Lines() {
		b.WriteString(c.paint(c.out, colors[line[0]], line) + "\n")
	}
	_, err := fmt.Fprint(c.out, b.String())
	return err
}

type jsonRule struct {
	Family string            `json:"family"`
	ID     string            `json:"id"`
	Fields []jsonFieldChange `json:"fields,omitempty"`
}

type jsonFieldChange struct {
	Field string `json:"field"`
	Old   string `json:"old"`
	New   string `json:"new"`
}

type jsonDiff struct {
	Added   []jsonRule `json:"added"`
	Changed []jsonRule `json:"changed"`
	Removed []jsonRule `json:"removed"`
}

func jsonChange(change rules.Change) jsonDiff {
	list := func(changes []rules.RuleChange) []jsonRule {
		all := make([]jsonRule, 0, len(changes))
		for _, r := range changes {
			j := jsonRule{Family: r.Family, ID: r.ID}
			for _, f := range r.Fields {
				j.Fields = append(j.Fields, jsonFieldChange{f.Key, f.Old, f.New})
			}
			all = append(all, j)
		}
		return all
	}
	return jsonDiff{list(change.Added), list(change.Changed), list(change.Removed)}
}
