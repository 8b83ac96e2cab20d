package main

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"
)

//go:embed starter.yaml
var starter []byte

func (c *command) new() *cobra.Command {
	return &cobra.Command{
		Use:   "new [FILE|-]",
		Short: "Write a starter rule file",
		Long: `New writes a commented starter rule file: to rules.yaml, to the file you name,
or to standard output for -. It never overwrites a file.`,
		Args:              args(0, 1, "one file, or - for standard output"),
		ValidArgsFunction: ruleFiles,
		RunE: func(_ *cobra.Command, args []string) error {
			name := append(args, "rules.yaml")[0]
			if name == stdin {
				_, err := c.out.Write(starter)
				return err
			}
			f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
			if errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("%s exists already: name another file", name)
			}
			if err != nil {
				return err
			}
			_, err = f.Write(starter)
			if err := errors.Join(err, f.Close()); err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.out, "%s written. Edit it, then run: penstock check %s\n", name, name)
			return err
		},
	}
}
