package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// The exit codes. diff has different ones, like diff(1).
const (
	exitOK       = 0
	exitErrors   = 1 // in the files, or in the usage of the command
	exitFindings = 2 // only findings, with check --strict
)

// exit is an error with only an exit code: it was already reported, or there is nothing to report.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// run runs a command line and returns its exit code.
func run(args []string, std streams) int {
	c := &command{streams: std, color: auto}
	root := c.root()
	root.SetArgs(args)
	err := root.Execute()
	if err == nil {
		return exitOK
	}
	if code, reported := errors.AsType[exit](err); reported {
		return int(code)
	}
	c.tell(err)
	if c.trouble != 0 {
		return c.trouble
	}
	return exitErrors
}

// command is one run of the program.
type command struct {
	streams
	color   colorMode
	trouble int // exit code for errors, if not exitErrors
}

// tell writes an error for people. It shows faults in files like check.
func (c *command) tell(err error) {
	if faults := faultsOf(err); len(faults) > 0 {
		_ = c.report(c.err, faults)
		return
	}
	fmt.Fprintf(c.err, "%s %s\n", c.paint(c.err, red, "penstock:"), strings.TrimSpace(err.Error()))
	if u, ok := errors.AsType[usageError](err); ok {
		fmt.Fprintf(c.err, "See %s --help.\n", u.command)
	}
}

func (c *command) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "penstock",
		Short: "Check, convert, compare and try rule files, and watch programs",
		Long: `Penstock works on rule files: native ones, YAML or JSON, and those of
alibaba/Sentinel for Java and sentinel-golang. It also shows running programs
that serve a console: top, tree, resources, rules, and explain with an address.

The exit code is 0 for success and 1 for errors; check --strict exits with 2 if
there are only findings, and diff exits like diff(1). The file name - means
standard input.`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
	}
	root.SetIn(c.in)
	root.SetOut(c.out)
	root.SetErr(c.err)
	root.PersistentFlags().Var(&c.color, "color", "colors: auto (on a terminal), always, never")
	_ = root.RegisterFlagCompletionFunc("color", fixed(colorNames...))
	root.AddCommand(
		c.check(), c.convert(), c.diff(), c.explain(), c.format(), c.new(), c.schema(), c.try(), c.replay(), c.man(), c.version(),
		c.top(), c.tree(), c.resources(), c.rules(),
	)
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveDefault)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usage(cmd, err) })
	return root
}

// usageError is an error in the usage of a command.
type usageError struct {
	error
	command string
}

func usage(cmd *cobra.Command, err error) error { return usageError{err, cmd.CommandPath()} }

// args checks the number of arguments; its error names the missing ones.
func args(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		switch {
		case len(given) < least:
			return usage(cmd, fmt.Errorf("%s needs %s", cmd.Name(), what))
		case most >= 0 && len(given) > most:
			return usage(cmd, fmt.Errorf("%s takes %s: extra argument %q", cmd.Name(), what, given[most]))
		}
		return nil
	}
}

// fixed completes one of several words.
func fixed(words ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
}

// ruleFiles completes the names of rule files.
func ruleFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml", "yml", "json"}, cobra.ShellCompDirectiveFilterFileExt
}
