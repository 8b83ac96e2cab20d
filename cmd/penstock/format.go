package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/penstock-go/penstock/rules"
)

func (c *command) format() *cobra.Command {
	var write, diff, check bool
	var opts rules.ParseOptions
	cmd := &cobra.Command{
		Use:   "fmt [FILE|DIR|-]...",
		Short: "Format native rule files",
		Long: `Fmt formats native rule files: the keys of a rule in the order of docs/rules.md,
an indentation of two spaces, end-of-line comments aligned. Comments stay, and
so do the order of rules and single empty lines. The meaning never changes.

Without -w, -d or --check, the formatted text goes to standard output. Convert
Sentinel's files first; files with errors are not touched.

Exit code: 0; 1 for errors, or if -d or --check finds a file that is not
formatted.`,
		Example: `  penstock fmt -w rules/
  penstock fmt --check rules/
  penstock fmt <rules.yaml`,
		Args:              args(0, -1, "files, directories, or - for standard input"),
		ValidArgsFunction: ruleFiles,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = []string{stdin}
			}
			names, err := expand(args, opts)
			if err != nil {
				return err
			}
			var code error
			for _, name := range names {
				f := c.read(name, opts)
				text, err := f.formatted()
				if err != nil {
					c.tellOf(f, err)
					code = exit(exitErrors)
					continue
				}
				same := bytes.Equal(text, f.data)
				if (diff || check) && !same {
					code = exit(exitErrors)
				}
				switch {
				case write && name == stdin:
					err = errors.New("can't write to standard input: leave out -w, or name a file")
				case diff && !same:
					err = c.writeLineDiff(f.name, f.data, text)
				case check && !same:
					_, err = fmt.Fprintln(c.out, f.name)
				case !write && !diff && !check:
					_, err = c.out.Write(text)
				}
				if err == nil && write && !same {
					err = replace(name, text)
				}
				if err != nil {
					return err
				}
			}
			return code
		},
	}
	cmd.Flags().BoolVarP(&write, "write", "w", false, "write the files, instead of standard output")
	cmd.Flags().BoolVarP(&diff, "diff", "d", false, "show what would change")
	cmd.Flags().BoolVar(&check, "check", false, "list files that are not formatted")
	allowWritable(cmd, &opts)
	return cmd
}

// tellOf reports why a file is left alone.
func (c *command) tellOf(f ruleFile, err error) {
	faults := faultsOf(err)
	for i := range faults {
		faults[i].source = f.data
	}
	if len(faults) == 0 {
		faults = []fault{{FileError: rules.FileError{File: f.name, Problem: err.Error()}}}
	}
	_ = c.report(c.err, faults)
}

// replace replaces a file atomically: a reader sees the old text or the new one.
func replace(name string, text []byte) error {
	target, err := filepath.EvalSymlinks(name)
	if err != nil {
		return err
	}
	info, err := os.Stat(target)
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(target), ".penstock-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(text)
	err = errors.Join(err, tmp.Chmod(info.Mode().Perm()), tmp.Sync(), tmp.Close())
	if err != nil {
		return err
	}
	return os.Rename(tmp.Name(), target)
}
