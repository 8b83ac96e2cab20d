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
		Short: "Tell which rules a call would meet, and why",
		Long: `Explain loads rule files, or all of a directory, and tells which rules a call
to a resource would meet: in the order in which they are asked, why each
applies, and what it measures and allows. Below stand rules that are about the
name and do not apply, each with the reason, such as that another rule is
nearer to the name.

The engine is a fresh one, so nothing is used up yet. With the address of a
running program's console in the place of rule files, that program tells the
same as of now; the flags about its machine mean nothing then.

Exit code: 0, or 1 for errors, whatever becomes of the call.`,
		Example: `  penstock explain rules.yaml "GET /orders"
  penstock explain rules.yaml "GET /orders" --origin acme
  penstock explain http://127.0.0.1:8719 "GET /orders" --watch
  penstock explain rules/ "GET /search" --arg user=ann --arg 0=7`,
		Args:              args(2, -1, "rule files or directories or the address of a program's console, and a resource"),
		ValidArgsFunction: c.rulesThenResource,
		RunE: func(cmd *cobra.Command, args []string) error {
			remote := isAddress(args[0])
			if remote && len(args) > 2 {
				return usage(cmd, fmt.Errorf("explain takes one address of a program, and a resource: %q is too much", args[2]))
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
				return usage(cmd, errors.New("--watch is for a running program: its address stands in the place of rule files"))
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
	cmd.Flags().BoolVar(&watch, "watch", false, "again each second, of a running program")
	cmd.Flags().SortFlags = false
	return cmd
}

// alone reports what a single call can't have.
func (c caller) alone() error {
	for _, a := range c.args {
		if len(a.values) > 1 {
			return fmt.Errorf("--arg %s is there twice: a call has one", a.name)
		}
	}
	if len(c.endpoints) > 1 {
		return fmt.Errorf("--endpoint is there twice: a call has one")
	}
	return nil
}
