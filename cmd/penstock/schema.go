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
that know it check what is typed and complete it: those with a YAML language
server need one line at the begin of a file,

  # yaml-language-server: $schema=rules.schema.json

with the path of the schema, or its address, which penstock new writes there.`,
		Example: `  penstock schema >rules.schema.json`,
		Args:    args(0, 0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			_, err := c.out.Write(rules.Schema())
			return err
		},
	}
}
