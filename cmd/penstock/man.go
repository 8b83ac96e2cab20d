package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func (c *command) man() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write the man pages",
		Long: `Man writes a man page for each command into a directory, which it creates if
necessary. It overwrites existing pages. They bear today's date, or that of the
environment variable SOURCE_DATE_EPOCH.`,
		Example: `  penstock man ~/.local/share/man/man1`,
		Args:    args(1, 1, "one directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			header := &doc.GenManHeader{Section: "1", Source: "Penstock", Manual: "Penstock"}
			if err := doc.GenManTree(cmd.Root(), header, args[0]); err != nil {
				return err
			}
			_, err := fmt.Fprintf(c.out, "man pages written to %s\n", args[0])
			return err
		},
	}
}
