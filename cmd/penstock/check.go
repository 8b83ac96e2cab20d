package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/penstock-go/penstock/rules"
)

var dialectNames = []string{rules.Native.String(), rules.SentinelJava.String(), rules.SentinelGo.String()}

// parseFlags are the flags that say how files are to be read.
type parseFlags struct{ dialect, family string }

func (p *parseFlags) add(cmd *cobra.Command, name string) {
	cmd.Flags().StringVar(&p.dialect, name, "", "read the files as "+orList(dialectNames)+"\n(default: told by their keys)")
	cmd.Flags().StringVar(&p.family, "family", "", "which rules a list without a name holds,\nas in flow or degrade")
	_ = cmd.RegisterFlagCompletionFunc(name, fixed(dialectNames...))
}

func (p *parseFlags) options(cmd *cobra.Command) (opts rules.ParseOptions, err error) {
	opts.Family = p.family
	if p.dialect != "" && opts.Dialect.UnmarshalText([]byte(p.dialect)) != nil {
		err = usage(cmd, fmt.Errorf("unknown dialect %q: use %s", p.dialect, orList(dialectNames)))
	}
	return opts, err
}

func orList(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

func (c *command) check() *cobra.Command {
	var parse parseFlags
	var strict, asJSON bool
	var format string
	cmd := &cobra.Command{
		Use:   "check FILE|DIR|-...",
		Short: "Tell all that is wrong with rule files",
		Long: `Check reads rule files as a program would load them, and tells every mistake
of every file, with its line and column. Of a directory it reads the files
that end in .yaml, .yml or .json. The files are taken together: an id that
two of them have is a mistake.

Exit code: 0 if programs would load the files, 1 if not; with --strict, 2
where they would, but there are warnings.`,
		Example: `  penstock check rules.yaml
  penstock check --strict base.yaml services/
  penstock check --format github rules/`,
		Args:              args(1, -1, "files, directories, or - for standard input"),
		ValidArgsFunction: ruleFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts, err := parse.options(cmd)
			if err != nil {
				return err
			}
			switch {
			case !slices.Contains(formats, format):
				return usage(cmd, fmt.Errorf("unknown format %q: use %s", format, orList(formats)))
			case asJSON:
				format = "json"
			}
			files, _, faults, err := c.readAll(args, opts)
			if err != nil {
				return err
			}
			return c.checked(files, faults, format, strict)
		},
	}
	parse.add(cmd, "dialect")
	cmd.Flags().BoolVar(&strict, "strict", false, "exit with 2 if there are warnings")
	cmd.Flags().BoolVar(&asJSON, "json", false, "the same as --format json")
	cmd.Flags().StringVar(&format, "format", "text", "how to tell: "+orList(formats))
	_ = cmd.RegisterFlagCompletionFunc("format", fixed(formats...))
	return cmd
}

var formats = []string{"text", "json", "github"}

// checked tells what was found, and returns what the exit code says of it.
func (c *command) checked(files []ruleFile, faults []fault, format string, strict bool) (err error) {
	errs, warnings := 0, 0
	for _, f := range faults {
		if f.warning {
			warnings++
		} else {
			errs++
		}
	}
	switch format {
	case "json":
		err = writeJSON(c.out, struct {
			Files    []jsonFile  `json:"files"`
			Errors   int         `json:"errors"`
			Warnings int         `json:"warnings"`
			Found    []jsonFault `json:"found"`
		}{jsonFiles(files), errs, warnings, toJSON(faults)})
	case "github":
		err = annotations(c.out, faults)
	default:
		if err = c.report(c.out, faults); err == nil {
			_, err = fmt.Fprintln(c.out, c.summary(files, errs, warnings))
		}
	}
	switch {
	case err != nil:
		return err
	case errs > 0:
		return exit(exitErrors)
	case warnings > 0 && strict:
		return exit(exitFindings)
	}
	return nil
}

type jsonFile struct {
	File    string `json:"file"`
	Dialect string `json:"dialect,omitempty"` // none if the file has errors
	Rules   int    `json:"rules"`
}

func jsonFiles(files []ruleFile) (all []jsonFile) {
	for _, f := range files {
		j := jsonFile{File: f.name, Rules: f.parsed.Set.Len()}
		if f.err == nil {
			j.Dialect = f.parsed.Dialect.String()
		}
		all = append(all, j)
	}
	return all
}

func (c *command) summary(files []ruleFile, errs, warnings int) string {
	ruleCount := 0
	for _, f := range files {
		ruleCount += f.parsed.Set.Len()
	}
	in := count(len(files), "file")
	if len(files) == 1 {
		in = harmless(files[0].name)
	}
	var found []string
	if errs > 0 {
		found = append(found, c.paint(c.out, red, count(errs, "error")))
	}
	if warnings > 0 {
		found = append(found, c.paint(c.out, yellow, count(warnings, "warning")))
	}
	if errs > 0 {
		return in + ": " + strings.Join(found, ", ")
	}
	return in + ": " + strings.Join(append([]string{c.paint(c.out, green, "ok"), count(ruleCount, "rule")}, found...), ", ")
}
