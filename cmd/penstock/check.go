package main

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/penstock-go/penstock/core/spec"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotspot"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/rules/lint"
)

var dialectNames = []string{rules.Native.String(), rules.SentinelJava.String(), rules.SentinelGo.String()}

// parseFlags are the flags for reading files.
type parseFlags struct{ dialect, family string }

func (p *parseFlags) add(cmd *cobra.Command, name string) {
	cmd.Flags().StringVar(&p.dialect, name, "", "read them as "+orList(dialectNames)+"\n(default: detected by their keys)")
	cmd.Flags().StringVar(&p.family, "family", "", "family of the rules in a list without a name,\nsuch as flow or degrade")
	cmd.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, given string) pflag.NormalizedName {
		if given == "dialect" || given == "from" { // each command accepts both names
			given = name
		}
		return pflag.NormalizedName(given)
	})
	_ = cmd.RegisterFlagCompletionFunc(name, fixed(dialectNames...))
}

// set sets the options from the flags.
func (p *parseFlags) set(cmd *cobra.Command, opts *rules.ParseOptions) error {
	opts.Family = p.family
	if p.dialect != "" && opts.Dialect.UnmarshalText([]byte(p.dialect)) != nil {
		return usage(cmd, fmt.Errorf("unknown dialect %q: use %s", p.dialect, orList(dialectNames)))
	}
	return nil
}

func orList(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

func (c *command) check() *cobra.Command {
	var parse parseFlags
	var how together
	var strict, asJSON bool
	var format string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "check FILE|DIR|-...",
		Short: "Report all mistakes in rule files",
		Long: `Check reads rule files like a program that loads them, and reports every mistake
of every file, with its line and column. In a directory it reads the files that
end in .yaml, .yml or .json. The files are taken together: two rules with one id
in different files are a mistake, unless --later-wins is set.

If there are no errors, it also reports rules that load but can't do what their
author expects, with codes that docs/lint.md explains, and parts of Sentinel's
rules that have another meaning here.

Exit code: 0 if programs can load the files, 1 if not; with --strict, 2 if they
can but there are warnings or notices.`,
		Example: `  penstock check rules.yaml
  penstock check --strict base.yaml services/
  penstock check --format github rules/`,
		Args:              args(1, -1, "files, directories, or - for standard input"),
		ValidArgsFunction: ruleFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := parse.set(cmd, &how.ParseOptions); err != nil {
				return err
			}
			switch {
			case !slices.Contains(formats, format):
				return usage(cmd, fmt.Errorf("unknown format %q: use %s", format, orList(formats)))
			case asJSON:
				format = "json"
			}
			files, _, faults, err := c.readAll(args, how)
			if err != nil {
				return err
			}
			if !failed(faults) {
				faults = append(faults, findings(files, timeout)...)
			}
			return c.checked(files, faults, format, strict)
		},
	}
	parse.add(cmd, "dialect")
	how.add(cmd)
	cmd.Flags().BoolVar(&strict, "strict", false, "exit with 2 if there are warnings or notices")
	cmd.Flags().DurationVar(&timeout, "timeout", 0,
		"how long callers wait for an answer,\nto find rules that make them wait longer")
	cmd.Flags().BoolVar(&asJSON, "json", false, "the same as --format json")
	cmd.Flags().StringVar(&format, "format", "text", "output format: "+orList(formats))
	_ = cmd.RegisterFlagCompletionFunc("format", fixed(formats...))
	return cmd
}

var formats = []string{"text", "json", "github"}

// findings returns the linter's findings for the files together.
func findings(files []ruleFile, timeout time.Duration) (found []fault) {
	parsed := make([]rules.Parsed, len(files))
	sources := make(map[string][]byte)
	for i, f := range files {
		parsed[i], sources[f.name] = f.parsed, f.data
	}
	for _, f := range lint.CheckFiles(parsed, lint.Options{CallerTimeout: timeout}) {
		found = append(found, fault{f.Place, severity(f.Severity.String()), f.Code, sources[f.Place.File]})
	}
	return found
}

// checked reports the faults, and returns their exit code.
func (c *command) checked(files []ruleFile, faults []fault, format string, strict bool) (err error) {
	of := make(map[severity]int)
	for _, f := range faults {
		of[f.severity]++
	}
	switch format {
	case "json":
		err = writeJSON(c.out, struct {
			Files    []jsonFile  `json:"files"`
			Errors   int         `json:"errors"`
			Warnings int         `json:"warnings"`
			Notices  int         `json:"notices"`
			Found    []jsonFault `json:"found"`
			Needs    []string    `json:"needs,omitempty"` // prerequisites of a program
		}{jsonFiles(files), of[isError], of[isWarning], of[isNotice], toJSON(faults), needs(files)})
	case "github":
		err = annotations(c.out, faults)
	default:
		if err = c.report(c.out, faults); err == nil {
			_, err = fmt.Fprintln(c.out, c.summary(files, of))
		}
		if all := needs(files); err == nil && of[isError] == 0 && len(all) > 0 {
			loads := "It loads"
			if len(files) > 1 {
				loads = "They load"
			}
			_, err = fmt.Fprintf(c.out, "%s in a program that has %s.\n", loads, harmless(strings.Join(all, ", and ")))
		}
	}
	switch {
	case err != nil:
		return err
	case of[isError] > 0:
		return exit(exitErrors)
	case strict && slices.ContainsFunc(faults, func(f fault) bool { return f.code != overrides }):
		return exit(exitFindings)
	}
	return nil
}

// needs returns the prerequisites of a program that loads the files, namely of limits that a cluster
// shares.
func needs(files []ruleFile) (all []string) {
	var shared, named bool
	for _, f := range files {
		set := f.parsed.Set
		shared = shared || slices.ContainsFunc(set.Flow, func(r flow.Rule) bool { return r.Shared() && r.Mode != spec.Off }) ||
			slices.ContainsFunc(set.Hotspot, func(r hotspot.Rule) bool { return r.Shared() && r.Mode != spec.Off }) ||
			slices.ContainsFunc(set.Isolation, func(r isolation.Rule) bool { return r.Shared() && r.Mode != spec.Off })
		for _, c := range set.Cluster {
			u, err := url.Parse(c.Redis)
			if c.Redis == "" || err != nil {
				continue
			}
			named = true
			all = append(all, fmt.Sprintf("a store for %s:// in api.Config.Stores, such as penstockredis.Stores()", u.Scheme))
			if password, ok := u.User.Password(); ok && strings.HasPrefix(password, "$") {
				all = append(all, password[1:]+" in its environment")
			}
		}
	}
	if shared && !named {
		all = append(all, `a store for shared limits in api.Config.Cluster.Store; or add "cluster: {redis: URL}" to the top of the file`)
	}
	return all
}

type jsonFile struct {
	File    string `json:"file"`
	Dialect string `json:"dialect,omitempty"` // missing if the file has errors
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

// summary returns the last line.
func (c *command) summary(files []ruleFile, of map[severity]int) string {
	ruleCount := 0
	for _, f := range files {
		ruleCount += f.parsed.Set.Len() - len(f.over)
	}
	in := count(len(files), "file")
	if len(files) == 1 {
		in = harmless(files[0].name)
	}
	var found []string
	if of[isError] == 0 {
		found = append(found, c.paint(c.out, green, "ok"), count(ruleCount, "rule"))
	}
	for _, s := range []severity{isError, isWarning, isNotice} {
		if of[s] > 0 {
			found = append(found, c.paint(c.out, severityColors[s], count(of[s], s.String())))
		}
	}
	return in + ": " + strings.Join(found, ", ")
}
