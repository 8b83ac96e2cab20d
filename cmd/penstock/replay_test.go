package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// realLog returns a Combined log with the stamps of a real one.
func realLog(t *testing.T) string {
	t.Helper()
	file, err := os.Open("../../replay/testdata/stamps.gz")
	require.NoError(t, err)
	defer file.Close()
	in, err := gzip.NewReader(file)
	require.NoError(t, err)
	var b strings.Builder
	for lines := bufio.NewScanner(in); lines.Scan(); {
		n, err := strconv.ParseInt(lines.Text(), 10, 64)
		require.NoError(t, err)
		b.WriteString(combinedLine(time.Unix(n, 0), fmt.Sprint("192.0.2.", n%50), "GET", fmt.Sprint("/users/", n%1000), 200, ""))
	}
	return b.String()
}

func combinedLine(at time.Time, ip, method, path string, status int, after string) string {
	return fmt.Sprintf("%s - - [%s] \"%s %s HTTP/1.1\" %d 512 \"-\" \"curl/8\"%s\n", ip, at.UTC().Format("02/Jan/2006:15:04:05 -0700"), method, path, status, after)
}

type replayResult struct {
	Offered, Passed, Refused int64
	Clients                  int64
	Rules                    []jsonReplayRule
	Input                    jsonInput
}

// replayedJSON returns the outcome of a log under rules.
func replayedJSON(t *testing.T, rules, log string, args ...string) (out replayResult) {
	t.Helper()
	r := penstock(t, log, append([]string{"replay", "-", "--json", "--rules", write(t, "rules.yaml", rules)}, args...)...)
	require.Equal(t, exitOK, r.code, r.err)
	require.NoError(t, json.Unmarshal([]byte(r.out), &out))
	return out
}

// The check of a real log: 1,023 refusals at a limit of 3 in a second of the clock, and 103 at 5.
func TestReplayRealLog(t *testing.T) {
	log := realLog(t)
	for limit, refused := range map[int]int64{3: 1023, 5: 103} {
		rules := fmt.Sprintf("flow: [{id: all, resource: '*', together: true, threshold: %d, buckets: 1, strict: false}]", limit)
		out := replayedJSON(t, rules, log)
		assert.Equal(t, refused, out.Refused)
		assert.EqualValues(t, 10_000, out.Offered)
		assert.Equal(t, jsonInput{Lines: 10_000, Coarse: 10_000, Untimed: 10_000}, out.Input)
		assert.EqualValues(t, 50, out.Clients)
		assert.Equal(t, &refusedRange{refused, refused}, out.Rules[0].Range, "it doesn't matter to seconds of the clock")
		assert.Equal(t, refused, out.Rules[0].Refused)
	}
	out := replayedJSON(t, "flow: [{id: all, resource: '*', together: true, threshold: 3}]", log)
	assert.Less(t, out.Rules[0].Range.Least, out.Rules[0].Range.Most, "it does to seconds that begin at any time")
	out = replayedJSON(t, "flow: [{id: all, resource: '*', threshold: 3}]", log, "--window", "10s")
	assert.Positive(t, out.Input.Late, "the log is out of order by up to a minute")
	assert.EqualValues(t, 10_000, out.Offered+out.Input.Late)
}

// A generated log in every format, in the order in which its server writes it, under random limits:
// the refusals are those of a model of a few lines.
func TestReplayEveryFormat(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 5))
	type request struct {
		at     time.Time
		took   time.Duration
		path   string
		status int
	}
	begin := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	stamp := "2006-01-02T15:04:05.000Z"
	for format, line := range map[string]func(r request) string{
		"nginx": func(r request) string {
			end := r.at.Add(r.took)
			return strings.TrimSuffix(combinedLine(end, "192.0.2.1", "GET", r.path, r.status, ""), "\n") + fmt.Sprintf(" %.3f %d.%03d\n", r.took.Seconds(), end.Unix(), end.Nanosecond()/1e6)
		},
		"caddy": func(r request) string {
			end := r.at.Add(r.took)
			return fmt.Sprintf(`{"ts":%d.%03d,"request":{"client_ip":"192.0.2.1","method":"GET","uri":%q},"duration":%v,"status":%d}`+"\n",
				end.Unix(), end.Nanosecond()/1e6, r.path, r.took.Seconds(), r.status)
		},
		"envoy": func(r request) string {
			return fmt.Sprintf(`{"start_time":%q,"method":"GET","path":%q,"response_code":%d,"duration":%d,"downstream_remote_address":"192.0.2.1:1"}`+"\n",
				r.at.Format(stamp), r.path, r.status, r.took.Milliseconds())
		},
		"alb": func(r request) string {
			return fmt.Sprintf("http %s app/a 192.0.2.1:1 10.0.0.1:80 0.001 0.001 0.001 %d %d 1 1 \"GET http://h:80%s HTTP/1.1\" \"curl\" - - arn \"Root\" \"-\" \"-\" 0 %s \"forward\"\n",
				r.at.Add(r.took).Format(stamp), r.status, r.status, r.path, r.at.Format(stamp))
		},
		"haproxy": func(r request) string {
			return fmt.Sprintf("Mar  1 10:00:00 host haproxy[1]: 192.0.2.1:1 [%s] in back/srv 0/0/0/%d/%d %d 100 - - ---- 1/1/0/0/0 0/0 \"GET %s HTTP/1.1\"\n",
				r.at.Format("02/Jan/2006:15:04:05.000"), r.took.Milliseconds(), r.took.Milliseconds(), r.status, r.path)
		},
		"json": func(r request) string {
			return fmt.Sprintf(`{"t":%d,"p":%q,"s":%d,"d":%d,"ip":"192.0.2.1"}`+"\n", r.at.UnixMilli(), r.path, r.status, r.took.Milliseconds())
		},
		"csv": func(r request) string {
			return fmt.Sprintf("%s,\"%s\",%d,%d,192.0.2.1\n", r.at.Format(stamp), r.path, r.status, r.took.Milliseconds())
		},
	} {
		t.Run(format, func(t *testing.T) {
			var all []request
			at := begin
			for range 2000 {
				at = at.Add(time.Duration(random.Int64N(40)) * time.Millisecond)
				all = append(all, request{at, time.Duration(random.Int64N(500)) * time.Millisecond, fmt.Sprint("/p", random.IntN(3)), 200})
			}
			limits := []int{2 + random.IntN(8), 2 + random.IntN(8), 2 + random.IntN(8)}
			want := make([]int64, 3)
			taken := make(map[string]int)
			for _, r := range all {
				i := int(r.path[2] - '0')
				window := fmt.Sprint(i, r.at.Unix())
				if taken[window]++; taken[window] > limits[i] {
					want[i]++
				}
			}
			written := slices.Clone(all)
			if format == "nginx" || format == "caddy" || format == "haproxy" || format == "alb" {
				slices.SortStableFunc(written, func(a, b request) int { return a.at.Add(a.took).Compare(b.at.Add(b.took)) })
			}
			var log, rules strings.Builder
			for _, r := range written {
				log.WriteString(line(r))
			}
			rules.WriteString("flow:\n")
			for i, limit := range limits {
				fmt.Fprintf(&rules, "  - {id: r%d, resource: GET /p%d, threshold: %d, buckets: 1, strict: false}\n", i, i, limit)
			}
			args := []string{"--log", format}
			switch format {
			case "json":
				args = append(args, "--fields", "time=t,path=p,status=s,took=d:ms,ip=ip")
			case "csv":
				args = append(args, "--fields", "time=1,path=2,status=3,took=4:ms,ip=5")
			case "caddy", "envoy", "alb", "haproxy":
				args = nil // detected
			}
			out := replayedJSON(t, rules.String(), log.String(), args...)
			require.EqualValues(t, 2000, out.Offered, "%+v", out.Input)
			assert.Zero(t, out.Input.Untimed)
			for i := range limits {
				assert.Equal(t, want[i], out.Rules[i].Refused)
			}
		})
	}
}

// Files may be compressed and overlap, and be named in any order.
func TestReplayFiles(t *testing.T) {
	begin := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	var texts [3]string
	for i := range 300 {
		texts[i/100] += combinedLine(begin.Add(time.Duration(i)*10*time.Second), "192.0.2.1", "GET", "/a", 200, "")
	}
	dir := t.TempDir()
	var packed bytes.Buffer
	g := gzip.NewWriter(&packed)
	_, _ = g.Write([]byte(texts[0]))
	require.NoError(t, g.Close())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "access.log.2.gz"), packed.Bytes(), 0o600))
	packed.Reset()
	z, err := zstd.NewWriter(&packed)
	require.NoError(t, err)
	_, _ = z.Write([]byte(texts[1]))
	require.NoError(t, z.Close())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "access.log.1.zst"), packed.Bytes(), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "access.log.3"), nil, 0o600))
	in := func(name string) string { return filepath.Join(dir, name) }
	rules := write(t, "rules.yaml", "flow: [{id: a, resource: GET /a, threshold: 1, interval: 15s}]")
	r := penstock(t, texts[2], "replay", "-", in("access.log.1.zst"), in("access.log.2.gz"), in("access.log.3"), "--json", "--rules", rules)
	require.Equal(t, exitOK, r.code, r.err)
	var out replayResult
	require.NoError(t, json.Unmarshal([]byte(r.out), &out))
	assert.EqualValues(t, 300, out.Offered)
	assert.EqualValues(t, 150, out.Refused, "every other call")
	assert.Zero(t, out.Input.Late)

	r = penstock(t, texts[2], "replay", "-", in("access.log.1.zst"), "--json", "--rules", rules, "--since", "2026-03-01 10:30", "--until", "2026-03-01T10:40:00Z")
	require.NoError(t, json.Unmarshal([]byte(r.out), &out))
	assert.EqualValues(t, 60, out.Offered)

	require.NoError(t, os.WriteFile(in("cut.gz"), packed.Bytes()[:10], 0o600))
	for args, want := range map[string]string{
		in("none"): "no such file", dir: "is not a regular file", in("access.log.3"): "no requests in these logs",
		in("access.log.1.zst") + "|" + in("access.log.1.zst"): "named twice", in("access.log.1.zst") + "|--since|2027-01-01": "none within --since",
		in("access.log.1.zst") + "|--log|caddy":               "no line could be read as caddy: line 1: not a JSON object\n--log sets",
		in("access.log.1.zst") + "|--log|caddy|--show-values": "line 1: not a JSON object: 192.0.2.1 - - [01/Mar",
	} {
		r := penstock(t, "", append([]string{"replay"}, strings.Split(args, "|")...)...)
		assert.Equal(t, exitErrors, r.code, args)
		assert.Contains(t, r.err, want, args)
	}
	r = penstock(t, "rubbish\n", "replay", "-")
	assert.Contains(t, r.err, "stdin: unknown kind of log: set --log to combined, nginx")
}

const mixedRules = `flow:
  - {id: orders, resource: "GET /orders/{id}", threshold: 2}
  - {id: reports, resource: POST /reports, threshold: 2, behavior: throttle, maxWait: 2s}
  - {id: stricter, resource: "GET /orders/{id}", threshold: 1, mode: shadow}
  - {id: misspelt, resource: GET /oders, threshold: 1}
hotspot:
  - {id: keys, resource: GET /search, param: key, threshold: 1}
`

func mixedLog() string {
	begin := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	var b strings.Builder
	for i := range 60 {
		at := begin.Add(time.Duration(i/6) * time.Second)
		b.WriteString(combinedLine(at, fmt.Sprint("192.0.2.", i%3), "GET", fmt.Sprint("/orders/", i), 200+i/50*303, ""))
		b.WriteString(combinedLine(at, "192.0.2.9", "POST", "/reports", 200, ""))
		b.WriteString(combinedLine(at, "192.0.2.9", "GET", fmt.Sprint("/search?key=k", i%6), 429, ""))
	}
	return b.String() + "rubbish \x1b[31m\n"
}

func TestReplayText(t *testing.T) {
	rules := write(t, "rules.yaml", mixedRules)
	r := penstock(t, mixedLog(), "replay", "-", "--rules", rules, "--param", "key=query:key", "--fail-over", "90%")
	require.Equal(t, exitOK, r.code, r.err)
	assert.Equal(t, read(t, "testdata/replay.txt"), r.out)
	shown := penstock(t, mixedLog(), "replay", "-", "--rules", rules, "--param", "key=query:key", "--fail-over", "10%", "--show-values")
	assert.Equal(t, exitErrors, shown.code)
	assert.Contains(t, shown.out, "That is more than 10 %.")
	assert.Contains(t, shown.out, "  Most came from 192.0.2.")
	for line := range strings.Lines(r.out) {
		assert.LessOrEqual(t, len([]rune(strings.TrimSuffix(line, "\n"))), 80, line)
	}
}

func TestReplayWithoutRules(t *testing.T) {
	r := penstock(t, mixedLog(), "replay", "-")
	require.Equal(t, exitOK, r.code, r.err)
	assert.Equal(t, read(t, "testdata/replay-survey.txt"), r.out)
	assert.NotContains(t, r.out, "192.0.2.")
	assert.LessOrEqual(t, strings.Count(r.out, "\n"), 40, "one screen")
	r = penstock(t, mixedLog(), "replay", "-", "--show-values")
	assert.Contains(t, r.out, "192.0.2.9")
	var s survey
	r = penstock(t, mixedLog(), "replay", "-", "--json")
	require.NoError(t, json.Unmarshal([]byte(r.out), &s))
	assert.Equal(t, []string{"GET /orders/{id}", "GET /search", "POST /reports"}, []string{s.Routes[0].Route, s.Routes[1].Route, s.Routes[2].Route})
	assert.EqualValues(t, 180, s.Calls)
	assert.NotContains(t, r.out, "192.0.2.")

	timed := ""
	begin := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	for i := range 10 {
		timed += combinedLine(begin.Add(time.Duration(i)*time.Second), "192.0.2.1", "GET", "/a", 200, " 2500000")
	}
	r = penstock(t, timed, "replay", "-", "--log", "apache", "--json")
	require.NoError(t, json.Unmarshal([]byte(r.out), &s))
	assert.EqualValues(t, 3, s.InFlight.Calls)
	assert.EqualValues(t, 3, s.Routes[0].InFlight)
}

// A suggested limit, as a rule of its own, refuses as many calls as the survey says.
func TestReplaySuggestions(t *testing.T) {
	log := realLog(t) + mixedLog()
	var s survey
	r := penstock(t, log, "replay", "-", "--json")
	require.Equal(t, exitOK, r.code, r.err)
	require.NoError(t, json.Unmarshal([]byte(r.out), &s))
	for _, route := range s.Routes {
		out := replayedJSON(t, fmt.Sprintf("flow: [{id: a, resource: '%s', threshold: %d}]", route.Route, route.Limit), log)
		assert.Equal(t, route.Refused, out.Refused, route.Route)
		assert.Equal(t, route.Calls, out.Rules[0].Offered, route.Route)
	}
}

// Routes come from the rules, a list or the log, and params from its fields.
func TestReplayNames(t *testing.T) {
	begin := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	log := ""
	for i := range 10 {
		log += combinedLine(begin, fmt.Sprintf("2001:db8::%d", i), "GET", fmt.Sprint("/users/a", i), 200, "")
	}
	rules := "flow: [{id: a, resource: 'GET /users/%s', threshold: 3}]\nhotspot: [{id: b, resource: '*', param: net, threshold: 2}]\n"
	out := replayedJSON(t, fmt.Sprintf(rules, "{name}"), log, "--param", "net=ip/64")
	assert.Equal(t, "b", out.Rules[0].ID)
	assert.EqualValues(t, 8, out.Rules[0].Refused)
	assert.EqualValues(t, 10, out.Rules[1].Offered)
	out = replayedJSON(t, fmt.Sprintf(rules, ":name"), log, "--style", "gin", "--origin", "ip")
	assert.EqualValues(t, 7, out.Refused)
	routes := write(t, "routes.txt", "# all\nGET /users/{who}\n")
	out = replayedJSON(t, fmt.Sprintf(rules, "{who}"), log, "--routes", routes)
	assert.EqualValues(t, 7, out.Refused)
	r := penstock(t, log, "replay", "-", "--routes", write(t, "routes.txt", "\nusers\n"))
	assert.Contains(t, r.err, `routes.txt:2: "users" is not a route`)
}

// Text in a log is an attacker's: it controls no terminal, spreadsheet or page, and a bomb or a long
// line takes no memory.
func TestReplayHostileLog(t *testing.T) {
	begin := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	log := ""
	for i, path := range []string{"/\x1b]0;owned\a", "/<script>alert(1)</script>", "/=cmd|calc", "/a|b`c", "/\u202egnp", "/\xff\xfe", "/x\\x1b[31m", "/![x](http://evil)"} {
		log += combinedLine(begin, "\x1b[2J=cmd()", "GET", path, 200, "") + combinedLine(begin, fmt.Sprint("10.0.0.", i), "=CMD", path, 200, "")
	}
	log += strings.Repeat("\x1b[31m", 1<<18) + "\n\x1b[31mbad\u009b31m\n"
	for _, format := range replayFormats {
		for _, more := range [][]string{nil, {"--rules", write(t, "rules.yaml", "hotspot: [{id: a, resource: '*', param: ip, threshold: 1}]")}} {
			r := penstock(t, log, append([]string{"replay", "-", "--show-values", "--format", format}, more...)...)
			require.Equal(t, exitOK, r.code, r.err)
			assert.NotContains(t, r.out, "\x1b", format)
			assert.NotContains(t, r.out, "\a", format)
			assert.NotContains(t, r.out, "\u009b", format)
			assert.NotContains(t, r.out, "\u202e", format)
			switch format {
			case "github":
				assert.NotContains(t, r.out, "<script>")
				assert.NotRegexp(t, `[^\\]\]\(`, r.out)
				for line := range strings.Lines(r.out) {
					if strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "|-") {
						assert.Equal(t, 9, strings.Count(strings.ReplaceAll(line, `\|`, ""), "|"), line)
					}
				}
			case "csv":
				rows, err := csv.NewReader(strings.NewReader(r.out)).ReadAll()
				require.NoError(t, err)
				for _, row := range rows[1:] {
					assert.NotContains(t, "=+-@", row[0][:1])
				}
			}
		}
	}
	var bomb bytes.Buffer
	g := gzip.NewWriter(&bomb)
	_, _ = g.Write([]byte(mixedLog()))
	for range 64 {
		_, _ = g.Write(make([]byte, 1<<20))
	}
	require.NoError(t, g.Close())
	out := replayedJSON(t, mixedRules, bomb.String())
	assert.EqualValues(t, 2, out.Input.Bad)
}

func TestReplayUsage(t *testing.T) {
	for args, want := range map[string]string{
		"":                         "replay needs access logs, or - for standard input",
		"-|--log|iis":              `unknown kind of log "iis": use combined, nginx`,
		"-|--format|xml":           `unknown format "xml": use text, json, csv or github; --log sets the kind of log`,
		"-|--log|json":             "JSON lines and CSV need --fields",
		"-|--fields|time=t,path=p": "--fields needs --log json or --log csv",
		"-|--log|alb|--fields|x":   "--fields is for --log json and --log csv",
		"-|--stamp|begin":          `unknown stamp "begin": use arrival or end`,
		"-|--style|rails":          `unknown style "rails": use chi, echo, fiber, gin, hertz or nethttp`,
		"-|--param|user":           "--param is",
		"-|--param|net=ip/0":       `"ip/0" is not a network`,
		"-|--window|-1s":           "--window is -1s",
		"-|--since|today":          "use a time such as 2026-03-01",
		"-|--since|2026-03-02|--until|2026-03-01": "--since is not before --until",
		"-|--fail-over|1%":                        "--fail-over needs --rules",
		"-|--rules|-":                             "only one of rules and logs can be standard input",
		"-|--routes|none.txt":                     "none.txt",
	} {
		r := penstock(t, "", append([]string{"replay"}, slices.DeleteFunc(strings.Split(args, "|"), func(s string) bool { return s == "" })...)...)
		assert.Equal(t, exitErrors, r.code, args)
		assert.Contains(t, r.err, want, args)
		assert.Empty(t, r.out)
	}
	r := penstock(t, mixedLog(), "replay", "-", "--param", "host=host")
	assert.Contains(t, r.err, `these logs have no field "host": use user, referer, agent, query:NAME`)
	r = penstock(t, mixedLog(), "replay", "-", "--rules", write(t, "rules.yaml", "flow: [{treshold: 1}]"))
	assert.Contains(t, r.err, "unknown field")
}

// Standard input is in no file that others can read, and in none at all afterwards.
func TestReplayLeavesNoFile(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	r := penstock(t, mixedLog(), "replay", "-")
	require.Equal(t, exitOK, r.code, r.err)
	r = penstock(t, "rubbish", "replay", "-")
	require.Equal(t, exitErrors, r.code)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left)
	_, err = os.Stat(dir)
	assert.False(t, errors.Is(err, os.ErrNotExist))
}

func TestFigures(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		assert.Equal(t, want, grouped(n))
	}
	for n, want := range map[int64]string{0: "0 %", 1: "0.01 %", 31: "0.31 %", 250: "2.5 %", 9999: "99.9 %", 10000: "100 %"} {
		assert.Equal(t, want, portion(n, 10000))
	}
	assert.Equal(t, "< 0.01 %", portion(1, 1e6))
	assert.Equal(t, "about 993,000", roughly(992919))
	assert.Equal(t, "4,096", roughly(4096))
	assert.Equal(t, "12k", figure(12345, 3))
}
