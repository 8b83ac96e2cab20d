package main

import (
	"bytes"
	"encoding/json"

	"github.com/spf13/cobra"
)

func (c *command) convert() *cobra.Command {
	var parse parseFlags
	var how together
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "convert [FILE|DIR|-]...",
		Short: "Convert rules of any dialect to a native file",
		Long: `Convert reads rule files of alibaba/Sentinel for Java, of sentinel-golang, or
native ones, and writes one native file with the same meaning to standard
output: YAML, or JSON with --json. Fields with another meaning here, or none,
are reported on standard error. Comments are not kept.

Exit code: 0, or 1 if a file has errors.`,
		Example: `  penstock convert --from sentinel-java flow-rules.json >rules.yaml
  penstock convert --from sentinel-go --family flow rules.json
  penstock convert flow-rules.json degrade-rules.json >rules.yaml
  curl -s localhost:8719/getRules?type=flow | penstock convert`,
		Args:              args(0, -1, "files, directories, or - for standard input"),
		ValidArgsFunction: ruleFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := parse.set(cmd, &how.ParseOptions); err != nil {
				return err
			}
			if len(args) == 0 {
				args = []string{stdin}
			}
			_, set, faults, err := c.readAll(args, how)
			if err != nil {
				return err
			}
			if err := c.report(c.err, faults); err != nil {
				return err
			}
			if failed(faults) {
				return exit(exitErrors)
			}
			text, err := set.YAML()
			if asJSON && err == nil {
				var compact []byte
				if compact, err = set.MarshalJSON(); err == nil {
					var indented bytes.Buffer
					err = json.Indent(&indented, compact, "", "  ")
					text = append(indented.Bytes(), '\n')
				}
			}
			if err != nil {
				return err
			}
			_, err = c.out.Write(text)
			return err
		},
	}
	parse.add(cmd, "from")
	allowWritable(cmd, &how.ParseOptions)
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}
