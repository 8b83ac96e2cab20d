package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/penstock-go/penstock/internal/proof/source"
)

// goroutines lists the places where the library starts a goroutine or a timer, with the reason why
// the user's code can't end the process there. A function that recovers by itself needs no row.
var goroutines = map[string]string{
	"adapters/connect.WrapStreamingClient":      "over ends the call: what an exit calls is shielded",
	"adapters/grpc.StreamClientInterceptor":     "likewise",
	"adapters/hertz.Middleware":                 "waits for the response, then likewise",
	"internal/sharing.armLocked":                "ring recovers",
	"internal/sharing.ring":                     "likewise",
	"internal/sharing.probe":                    "survives runs the store's code; the logger is safelog's",
	"internal/sharing.send":                     "likewise",
	"bandwidth.set":                             "ends a context",
	"cluster/redis.Probe":                       "recovers, as does what it lets go-redis call",
	"cluster/redis.ask":                         "askAll recovers",
	"cluster/redis.read":                        "readNow waits for askAll, which recovers",
	"observe/console.join":                      "run makes frames by Engine.Shield",
	"observe/console.serve":                     "net/http recovers in handlers; the listener is ours",
	"internal/engine.Background":                "runs the function by Engine.Shield",
	"internal/engine.arm":                       "ring recovers: of repeated and of leakWatch",
	"internal/engine.listLocked":                "Engine.Every recovers",
	"internal/engine.listen":                    "likewise; listeners run by Engine.Shield",
	"internal/quotalog.startLocked":             "write recovers, in try",
	"core/clocks.Alarm":                         "whoever sets the alarm recovers: their rows are here",
	"core/clocks.Wakeable":                      "cancels a context",
	"core/clocks.start":                         "tick reads the machine's clock",
	"internal/sampler.Serve":                    "Engine.Every recovers",
	"observe/metriclog.armLocked":               "ring recovers",
	"observe/metriclog.ring":                    "likewise",
	"rules.WatchSource":                         "survive runs the source's code and the listeners; the logger is safelog's",
	"rules.openDirs":                            "passes on what fsnotify tells",
	"rules.watch":                               "survive runs the listeners, survivingApply puts rules in force; the logger is safelog's",
	"observe/transport/sentinel.ListenAndServe": "net/http recovers in handlers; the logger is safelog's",
}

// loggers are the files that read a user's logger: they wrap it.
var loggers = map[string]string{
	"internal/engine/engine.go":  "safelog wraps it",
	"internal/sharing/member.go": "likewise",
	"internal/sharing/batch.go":  "the member's logger, which is wrapped",
	"internal/sharing/shard.go":  "likewise",
	"internal/sharing/broken.go": "likewise",
	"internal/sharing/agenda.go": "likewise",
	"api/cluster.go":             "passes it to sharing.Join, which wraps it",
	"api/config.go":              "passes it to engine.NewEngine, which wraps it",
	"rules/watch.go":             "passes it to NewLoader, which wraps it",
	"rules/loader.go":            "safelog wraps it",
}

// programs are the folders that aren't part of the library.
var programs = []string{"examples", "example", "internal/proof", "internal/bench", "cmd", "internal/tools", "cluster/redis/internal",
	"adapters/conformance", "adapters/internal/meet", "adapters/internal/rpctest", "cluster/storetest"} // for tests

// If one of our goroutines runs the user's code without recover, a panic there ends the program. So
// each place that starts a goroutine is reviewed.
func TestUserCodeIsShieldedOnOurGoroutines(t *testing.T) {
	seen := map[string]bool{}
	each(t, func(dir, name string, f *ast.File, fset *token.FileSet) {
		for _, decl := range f.Decls {
			function, ok := decl.(*ast.FuncDecl)
			if !ok || function.Body == nil {
				continue
			}
			ast.Inspect(function.Body, func(n ast.Node) bool {
				started, body := starts(n)
				if !started || body != nil && recovers(body) {
					return true
				}
				place := dir + "." + function.Name.Name
				if seen[place] = true; goroutines[place] == "" {
					t.Errorf("%v: %s starts a goroutine or a timer that doesn't recover: recover there, or run the user's code with Engine.Shield, and add a row to goroutines in internal/proof/arch that says so",
						fset.Position(n.Pos()), place)
				}
				return true
			})
		}
	})
	for place := range goroutines {
		if !seen[place] {
			t.Errorf("%s starts nothing: remove its row", place)
		}
	}
}

// Log handlers are the user's code, too: a configured logger is used through safelog only.
func TestLoggersOfTheUserAreWrapped(t *testing.T) {
	each(t, func(dir, name string, f *ast.File, fset *token.FileSet) {
		ast.Inspect(f, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok { // Engine.Logger() is safe
				if s, ok := call.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Logger" {
					return false
				}
			}
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, _ := s.X.(*ast.Ident)
			isSlog := x != nil && x.Name == "slog"
			if (s.Sel.Name == "Logger" && !isSlog || s.Sel.Name == "Default" && isSlog) && dir != "internal/safelog" && loggers[path.Join(dir, path.Base(name))] == "" {
				t.Errorf("%v: logger passed in by the user: wrap it with safelog.New, or use Engine.Logger", fset.Position(n.Pos()))
			}
			return true
		})
	})
}

// starts reports whether n starts a goroutine or a timer, and returns its body if it is a literal.
func starts(n ast.Node) (started bool, body *ast.BlockStmt) {
	var run ast.Expr
	switch n := n.(type) {
	case *ast.GoStmt:
		run = n.Call.Fun
	case *ast.CallExpr:
		s, ok := n.Fun.(*ast.SelectorExpr)
		if !ok || !slices.Contains([]string{"Go", "AfterFunc", "Alarm", "Every"}, s.Sel.Name) || len(n.Args) == 0 {
			return false, nil
		}
		run = n.Args[len(n.Args)-1]
	default:
		return false, nil
	}
	if literal, ok := run.(*ast.FuncLit); ok {
		return true, literal.Body
	}
	return true, nil
}

// recovers reports whether a function begins with a deferred recover.
func recovers(body *ast.BlockStmt) (does bool) {
	for _, statement := range body.List {
		deferred, ok := statement.(*ast.DeferStmt)
		if !ok {
			return does
		}
		ast.Inspect(deferred, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if ok {
				id, named := call.Fun.(*ast.Ident)
				does = does || named && id.Name == "recover"
			}
			return true
		})
	}
	return does
}

// each calls f with every file of the library, nested modules included.
func each(t *testing.T, f func(dir, name string, file *ast.File, fset *token.FileSet)) {
	t.Helper()
	thisModule(t) // so that a cached result follows every change of a file
	fset := token.NewFileSet()
	files := 0
	err := source.Each(os.DirFS("../../.."), func(name string, text []byte) error {
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, "_sim.go") || slices.ContainsFunc(programs, func(p string) bool {
			return strings.Contains("/"+name, "/"+p+"/")
		}) {
			return nil
		}
		syntax, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
		if err == nil {
			files++
			f(path.Dir(name), name, syntax, fset)
		}
		return err
	})
	if err != nil || files < 100 {
		t.Fatalf("read %d files of the library: %v", files, err)
	}
}
