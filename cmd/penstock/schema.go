package main

import (
	"github.com/spf13/cobra"

	"github.com/penstock-go/penstock/rules"
)

func (c *command) schema() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Write the JSON Schema of rule files",
		Long: `Schema writes the JSON Schema of native rule files, as of this version. Editors
use it to check and complete what you type. An editor with a YAML language
server needs one line at the top of a file,

  # yaml-language-server: $schema=rules.schema.json

with the path or the URL of the schema; penstock new writes that line.`,
		Example: `  penstock schema >rules.schema.json`,
		Args:    args(0, 0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			_, err := c.out.Write(rules.Schema())
			return err
		},
	}
}
