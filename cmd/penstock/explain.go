package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

func (c *command) explain() *cobra.Command {
	who := new(callerFlags)
	var how together
	var asJSON, watch bool
	cmd := &cobra.Command{
		Use:   "explain RULES...|URL RESOURCE",
		Short: "Show which rules apply to a call, and why",
		Long: `Explain loads rule files, or all files of a directory, and shows which rules
apply to a call of a resource, in order of evaluation: why each one applies,
what it measures, and its limit. Rules that name the resource but don't apply
follow, each with the reason, such as a rule that matches the name more closely.

The engine is a new one, so no limit is used up. With the address of a running
program's console in place of rule files, explain shows that program's current
state; the flags for the machine then have no effect.

Exit code: 0, or 1 for errors, whether the call passes or not.`,
		Example: `  penstock explain rules.yaml "GET /orders"
  penstock explain rules.yaml "GET /orders" --origin acme
  penstock explain http://127.0.0.1:8719 "GET /orders" --watch
  penstock explain rules/ "GET /search" --arg user=ann --arg 0=7
  penstock explain rules.yaml "POST /chat" --cost tokens=1200`,
		Args:              args(2, -1, "rule files or directories or the address of a program's console, and a resource"),
		ValidArgsFunction: c.rulesThenResource,
		RunE: func(cmd *cobra.Command, args []string) error {
			remote := isAddress(args[0])
			if remote && len(args) > 2 {
				return usage(cmd, fmt.Errorf("explain takes one address of a program, and a resource: extra argument %q", args[2]))
			}
			paths, resource := rulesAndResource(args)
			caller, busy, err := who.of()
			if err == nil {
				err = caller.alone()
			}
			if err != nil {
				return usage(cmd, err)
			}
			if remote {
				return c.explainAt(args[0], resource, caller, asJSON, watch)
			}
			if watch {
				return usage(cmd, errors.New("--watch is for a running program: give its address in place of rule files"))
			}
			set, err := c.load(paths, how)
			if err != nil {
				return err
			}
			_, guard, err := busy.guard(set)
			if err != nil {
				return err
			}
			defer guard.Close()
			ctx, opts := caller.options(0)
			x, err := guard.Explain(ctx, resource, opts...)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(c.out, x)
			}
			_, err = x.WriteTo(c.out)
			return err
		},
	}
	who.add(cmd)
	how.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	cmd.Flags().BoolVar(&watch, "watch", false, "repeat every second, for a running program")
	cmd.Flags().SortFlags = false
	return cmd
}

// alone returns an error for flags that a single call can't have.
func (c caller) alone() error {
	for _, a := range c.args {
		if len(a.values) > 1 {
			return fmt.Errorf("--arg %s is repeated: a call has one", a.name)
		}
	}
	for _, cost := range c.costs {
		if len(cost.values) > 1 {
			return fmt.Errorf("--cost %s is repeated: a call has one", cost.name)
		}
	}
	if len(c.endpoints) > 1 {
		return fmt.Errorf("--endpoint is repeated: a call has one")
	}
	return nil
}
