// Package arch checks the module's source against its rules: which package may import which, where
// a dependency may be used, and what code must never do. It reads the files itself instead of
// asking the go command, so that a cached test result depends on every file.
package arch

import (
	"go/ast"
	"path"
	"strings"
	"testing"
)

// families are the packages of the rule families. None imports another, except outlier, which
// uses breakers to eject endpoints.
const families = "flow isolation adaptive breaker upstream outlier hotspot system authority"

// public lists the packages that programs and nested modules may build on.
const public = "api bandwidth observe/inspect observe/metriclog rules rules/lint rules/gateway rules/sources/httpsource slots cluster cluster/store cluster/storetest core core/argument core/clocks core/pattern core/spec node stat core/host replay " + families

// layers lists the packages of this module that each package may import, lowest layer first. A name
// ending in /* stands for every package below that folder. Only non-test files count: a test may
// use the layers above.
var layers = []layer{
	{"internal/shared", ""},                 // sync and sync/atomic, or their replacements in schedule tests
	{"internal/lending", "internal/shared"}, // when counters lend to lanes, and how much
	{"internal/netname", ""},                // normalizes addresses and host names
	{"internal/safelog", ""},                // loggers whose handlers may panic
	{"internal/accesslog", ""},              // reads the access logs of servers, for replays
	{"internal/sketch", ""},                 // quantiles, different texts and frequent ones, in bounded memory
	{"internal/shown", ""},                  // names and numbers as text, for people and in files

	{"stat", "internal/lending internal/shared"},
	{"core/argument", ""},                                                     // the values of calls' arguments
	{"internal/meter", "internal/lending internal/shared core/argument stat"}, // units in flight, turns and tokens
	{"core/host", ""},                                                         // the machine's load and CPU use from the system's files
	{"node", "internal/meter internal/shared stat"},
	{"core/clocks", "internal/shared internal/shown stat"},                 // the engine's clocks
	{"core/pattern", ""},                                                   // the expressions that match names, and their cost limits
	{"core/spec", "internal/shown core/pattern"},                           // fields common to the rules of all families
	{"internal/quotalog", "internal/shared"},                               // the use of quotas, over restarts
	{"internal/calendar", "core/spec internal/quotalog internal/shared"},   // days, weeks and months of time zones, and counts in them
	{"cluster/store", "stat"},                                              // the protocol between members and stores
	{"cluster", "cluster/store internal/shown core/clocks core/spec stat"}, // the words for limits that several processes share
	{"cluster/storetest", "cluster/store stat"},                            // the test cases for stores
	{"internal/sharing", "cluster cluster/store internal/lending internal/meter internal/safelog internal/shared internal/shown core/clocks stat"}, // members, their leases, and their requests
	{"core", "internal/shown core/argument core/spec"}, // the words: refusals, stats, explanations
	{"internal/sampler", "internal/shared core/host"},  // the machine, read while a rule needs it
	{"internal/engine", "core internal/meter internal/quotalog internal/safelog internal/shared internal/shown node stat core/host core/clocks core/argument core/pattern core/spec internal/sampler"},
	{"internal/shed", "core internal/engine internal/meter internal/shared core/spec stat"},                                                                           // which calls go first under overload
	{"internal/family", "cluster core core/argument internal/engine internal/meter internal/shared internal/sharing internal/shown core/pattern core/spec node stat"}, // which rules apply, and their state

	{"flow", "cluster internal/calendar internal/meter internal/quotalog internal/shared internal/sharing internal/shown core internal/engine internal/family internal/sampler core/spec node stat"},
	{"isolation", "cluster internal/meter internal/shared internal/sharing internal/shown core internal/engine internal/family core/argument core/pattern core/spec node stat"},
	{"adaptive", "internal/meter internal/shared internal/shed internal/shown core internal/engine internal/family core/spec node stat"},
	{"breaker", "internal/shared internal/shown core internal/engine internal/family core/spec node stat"},
	{"upstream", "internal/shared internal/shown core internal/engine internal/family core/spec node stat"},
	{"outlier", "internal/shared internal/shown core internal/engine internal/family core/spec node stat breaker"},
	{"hotspot", "cluster internal/calendar internal/lending internal/meter internal/quotalog internal/shared internal/sharing internal/shown core internal/engine internal/family core/spec core/argument node stat"},
	{"system", "internal/meter internal/shared internal/shed internal/shown core internal/engine internal/family internal/sampler core/pattern core/spec node stat"},
	{"authority", "internal/shared internal/shown core internal/engine internal/family core/spec node stat"},

	{"rules/gateway", "internal/netname internal/shown core internal/engine core/pattern core/spec flow hotspot"}, // groups of paths, and rules that become those of families

	{"internal/sentinel", "cluster core/spec stat rules/gateway " + families}, // the rules of both Sentinels, and their equivalents

	{"slots", "core internal/engine core/argument internal/meter node stat"},
	{"rules", "internal/safelog internal/sentinel internal/shown cluster core internal/engine core/pattern core/spec rules/gateway " + families},

	{"rules/lint", "internal/calendar internal/netname internal/shown rules core core/pattern core/spec cluster " + families},
	{"rules/internal/schemagen", "rules core/argument core/pattern core/spec stat rules/gateway " + families}, // writes the schema that rules embeds

	{"rules/sources/httpsource", "rules"}, // rules from an HTTP server

	{"observe/inspect", "internal/shown rules core internal/engine core/spec node stat"},
	{"api", "internal/sampler internal/sharing cluster cluster/store observe/inspect rules rules/lint slots core internal/engine core/argument core/clocks core/spec node stat core/host " + families},

	{"internal/simulation", "core/host"},                                                                           // calls on a simulated clock
	{"replay", "api breaker core internal/simulation internal/sketch"},                                             // recorded traffic under rules
	{"bandwidth", "api"},                                                                                           // limits the bytes of streams
	{"observe/metriclog", "api core core/argument core/clocks node slots stat"},                                    // the counts, in Sentinel's files
	{"observe/transport/sentinel", public + " internal/netname internal/sentinel internal/shown"},                  // the command API of Sentinel
	{"observe/console", "internal/shown api observe/inspect rules breaker core core/argument core/spec node stat"}, // the dashboard and its API

	{"adapters/refusal", public + " internal/shown"},                                               // how a refusal is reported
	{"adapters/internal/response", ""},                                                             // common parts of HTTP adapters
	{"adapters/nethttp", public + " adapters/refusal adapters/internal/response internal/netname"}, // guards handlers of net/http
	{"adapters/internal/rpc", public + " adapters/refusal adapters/internal/response"},             // guards remote procedure calls
	{"adapters/internal/meet", ""},                                                                 // lets cases and handlers wait for each other
	{"adapters/internal/rpctest", public + " adapters/refusal adapters/internal/meet"},             // the cases for those
	{"adapters/conformance", public + " adapters/refusal adapters/nethttp adapters/internal/meet"}, // the cases for HTTP servers
	{"adapters/*", public + " adapters/refusal adapters/nethttp"},
	{"observe/exporter/internal/series", "api core node stat"}, // bounded labels
	{"observe/exporter/*", public + " observe/exporter/internal/series"},
	{"datasource/*", public},
	{"cluster/redis/internal/compare", public + " cluster/redis cluster/redis/internal/server internal/sharing"}, // measures members without a Guard
	{"cluster/*", public},
	{"cmd/*", public},
	{"internal/bench", public + " internal/meter internal/proof/source internal/proof/tables"},

	{"examples/customslot", "api slots"},                                       // extends the chain
	{"examples/quickstart", "api observe/console observe/inspect " + families}, // keeps a whole tree, and shows the dashboard
	{"examples/nethttp", "api adapters/nethttp " + families},                   // a whole server
	{"examples/gateway", "api adapters/nethttp " + families},                   // likewise
	{"examples/hello", "api adapters/nethttp observe/console"},                 // the program of the first page
	{"examples/memory", "api core/host " + families},                           // simulates a host
	{"examples/system", "api core/host " + families},                           // likewise
	{"examples/*", "api " + families},                                          // one import, and what rules in Go need

	{"internal/proof/*", "*"}, // test tools, and tests of the whole
}

// testTools may be imported only by tests and by each other, regardless of their rows.
var testTools = []string{"internal/proof/arch", "internal/proof/books", "internal/proof/chance", "internal/proof/figure", "internal/proof/patience", "internal/proof/plant", "internal/proof/race", "internal/proof/replay", "internal/proof/schedules", "internal/proof/trial"}

type layer struct {
	pkg     string // the package's folder
	imports string // the packages of this module that it may import
}

func TestLayers(t *testing.T) {
	report(t, thisModule(t).checkLayers(layers))
}

func (t tree) checkLayers(rows []layer) (problems []string) {
	unknown := map[string]bool{}
	for _, f := range t.files {
		if f.test || unknown[f.dir] {
			continue
		}
		row, ok := rowOf(rows, f.dir)
		if !ok {
			unknown[f.dir] = true
			problems = append(problems, t.problem(f.syntax.Name,
				"no row for this package: add {%q, \"...\"} to layers in internal/proof/arch/arch_test.go, in its layer's place", f.dir))
			continue
		}
		t.imports(f, func(spec *ast.ImportSpec, name string) {
			pkg, ok := strings.CutPrefix(name+"/", t.module+"/")
			if !ok {
				return
			}
			pkg = path.Clean(pkg)
			switch {
			case !f.in("proof") && matchesAny(testTools, pkg):
				problems = append(problems, t.problem(spec, "%s is for tests only: import it in a _test.go file", pkg))
			case row.imports != "*" && !matchesAny(strings.Fields(row.imports), pkg):
				problems = append(problems, t.problem(spec,
					"%s must not import %s, only [%s]: move the code to the layer that may see both", f.dir, pkg, row.imports))
			}
		})
	}
	return problems
}

// Examples must be copyable, so their tests use public packages only.
func TestExamplesCanBeCopied(t *testing.T) {
	report(t, thisModule(t).checkExamples())
}

// checkExamples requires that the tests of examples import only public packages of this module.
func (t tree) checkExamples() (problems []string) {
	for _, f := range t.files {
		if !f.test || !isExample(f.dir) {
			continue
		}
		t.imports(f, func(spec *ast.ImportSpec, name string) {
			if pkg, ok := strings.CutPrefix(name, t.module+"/"); ok && !matchesAny(strings.Fields(public), pkg) {
				problems = append(problems, t.problem(spec, "the test of an example must not import %s, only [%s]: it is to be copied", pkg, public))
			}
		})
	}
	return problems
}

func isExample(dir string) bool { return strings.HasPrefix(dir, "examples/") }

func rowOf(rows []layer, dir string) (layer, bool) {
	for _, row := range rows {
		if matchesAny([]string{row.pkg}, dir) {
			return row, true
		}
	}
	return layer{}, false
}

// matchesAny reports whether one of the names is pkg, or ends in /* and pkg lies below that folder.
func matchesAny(names []string, pkg string) bool {
	for _, name := range names {
		folder, all := strings.CutSuffix(name, "*")
		if name == pkg || all && strings.HasPrefix(pkg, folder) {
			return true
		}
	}
	return false
}
