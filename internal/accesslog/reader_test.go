package accesslog

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// seen is a record as text.
func seen(r *Record) string {
	at := time.Unix(0, r.At).UTC().Format(time.RFC3339Nano)
	if r.Coarse {
		at += "~"
	}
	took := "?"
	if r.Took >= 0 {
		took = r.Took.String()
	}
	s := fmt.Sprintf("%s %s %s %s %s %d %s", at, took, r.Method, r.Path, r.Query, r.Status, r.Client)
	if r.Resource != nil || r.Origin != nil || r.Units != 1 {
		s += fmt.Sprintf(" %s|%s|%d", r.Resource, r.Origin, r.Units)
	}
	for _, v := range r.Values {
		if v == nil {
			s += " nil"
			continue
		}
		s += fmt.Sprintf(" %q", v)
	}
	return s
}

// all reads a log, and returns its records as text.
func all(t *testing.T, format, text string, o Options) ([]string, Stats) {
	t.Helper()
	f, err := Find(format)
	require.NoError(t, err)
	r, err := NewReader(strings.NewReader(text), f, o)
	require.NoError(t, err)
	var got []string
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			return got, r.Stats()
		}
		require.NoError(t, err)
		got = append(got, seen(rec))
	}
}

const (
	commonLine  = `83.149.9.216 - - [17/May/2015:12:05:03 +0200] "GET /a/b?x=1&user=ann HTTP/1.1" 200 203023`
	fullLine    = commonLine + ` "http://example.com/" "Mozilla \"5.0\" (X11)"`
	caddyText   = `{"level":"info","ts":1646861401.5241024,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"127.0.0.1","remote_port":"41342","client_ip":"192.0.2.1","proto":"HTTP/2.0","method":"GET","host":"localhost","uri":"/a?x=1","headers":{"User-Agent":["curl/7.82.0"]}},"bytes_read":0,"duration":0.0009,"size":10900,"status":200}`
	envoyText   = `{"start_time":"2026-03-01T10:00:00.123Z","method":"POST","path":"/a?x=1","response_code":503,"duration":12,"downstream_remote_address":"192.0.2.1:4711","x_forwarded_for":"10.9.9.9"}`
	albText     = `https 2018-07-02T22:23:00.186641Z app/my-loadbalancer/50dc6c495c0c9188 192.168.131.39:2817 10.0.0.1:80 0.086 0.048 0.037 200 200 0 57 "GET https://www.example.com:443/a?x=1 HTTP/1.1" "curl/7.46.0" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:aws:x "Root=1-58337281-1d84f3d73c47ec4e58577259" "www.example.com" "arn:aws:acm:y" 1 2018-07-02T22:22:48.364000Z "authenticate,forward" "-" "-" "10.0.0.1:80" "200" "-" "-"`
	haproxyText = `Feb  6 12:14:14 localhost haproxy[14389]: 10.0.1.2:33317 [06/Feb/2009:12:14:14.655] http-in static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {1wt.eu} {} "GET /a?x=1 HTTP/1.1"`
)

// Each format, with the moment that its stamp stands for.
func TestFormats(t *testing.T) {
	for _, c := range []struct{ format, line, want string }{
		{"combined", commonLine, "2015-05-17T10:05:03Z~ ? GET /a/b x=1&user=ann 200 83.149.9.216"},
		{"combined", fullLine + ` 0.250`, "2015-05-17T10:05:03Z~ ? GET /a/b x=1&user=ann 200 83.149.9.216"},
		{"nginx", fullLine + ` 0.250`, "2015-05-17T10:05:03Z~ 250ms GET /a/b x=1&user=ann 200 83.149.9.216"},
		{"nginx", fullLine + ` 2.250`, "2015-05-17T10:05:01Z~ 2.25s GET /a/b x=1&user=ann 200 83.149.9.216"},
		{"nginx", fullLine + ` "-" rt=0.250 uct="0.001" 1431857103.750`, "2015-05-17T10:05:03.5Z 250ms GET /a/b x=1&user=ann 200 83.149.9.216"},
		{"nginx", commonLine, "2015-05-17T10:05:03Z~ ? GET /a/b x=1&user=ann 200 83.149.9.216"},
		{"apache", fullLine + ` 250000`, "2015-05-17T10:05:03Z~ 250ms GET /a/b x=1&user=ann 200 83.149.9.216"},
		{"apache", commonLine + ` 1`, "2015-05-17T10:05:03Z~ 1µs GET /a/b x=1&user=ann 200 83.149.9.216"},
		{"caddy", caddyText, "2022-03-09T21:30:01.5232024Z 900µs GET /a x=1 200 192.0.2.1"},
		{"caddy", strings.Replace(caddyText, "0.0009", `"1.5ms"`, 1), "2022-03-09T21:30:01.5226024Z 1.5ms GET /a x=1 200 192.0.2.1"},
		{"caddy", strings.Replace(caddyText, `"client_ip":"192.0.2.1",`, "", 1), "2022-03-09T21:30:01.5232024Z 900µs GET /a x=1 200 127.0.0.1"},
		{"envoy", envoyText, "2026-03-01T10:00:00.123Z 12ms POST /a x=1 503 192.0.2.1"},
		{"alb", albText, "2018-07-02T22:22:48.364Z 11.822641s GET /a x=1 200 192.168.131.39"},
		{"alb", strings.Replace(albText, "2018-07-02T22:22:48.364000Z", "-", 1), "2018-07-02T22:23:00.015641Z 171ms GET /a x=1 200 192.168.131.39"},
		{"haproxy", haproxyText, "2009-02-06T12:14:14.655Z 109ms GET /a x=1 200 10.0.1.2"},
		{"haproxy", strings.Replace(haproxyText, "69/109 200", "-1/+5 -1", 1), "2009-02-06T12:14:14.655Z 5ms GET /a x=1 0 10.0.1.2"},
		{"combined", `::1 - a [b] c [17/May/2015:12:05:03 +0200] "PURGE http://h/x HTTP/1.0" 404 -`, "2015-05-17T10:05:03Z~ ? _OTHER /x  404 ::1"},
	} {
		got, stats := all(t, c.format, c.line+"\n", Options{})
		assert.Equal(t, []string{c.want}, got, "%s: %s: %+v", c.format, c.line, stats.Samples)
	}
}

func TestWantedFields(t *testing.T) {
	for _, c := range []struct {
		format, line, want string
		fields             []string
	}{
		{"combined", strings.Replace(fullLine, "- -", "- ann", 1), `"ann" "http://example.com/" "Mozilla \\\"5.0\\\" (X11)" "1" "ann" nil`, []string{"user", "referer", "agent", "query:x", "query:user", "query:none"}},
		{"combined", commonLine, `nil nil`, []string{"user", "agent"}},
		{"caddy", caddyText, `"curl/7.82.0" "localhost" nil`, []string{"request.headers.User-Agent", "request.host", "none"}},
		{"alb", albText, `"curl/7.46.0" "www.example.com"`, []string{"agent", "domain"}},
		{"haproxy", haproxyText, `"1"`, []string{"query:x"}},
	} {
		got, stats := all(t, c.format, c.line, Options{Want: c.fields})
		require.Len(t, got, 1, "%+v", stats)
		assert.True(t, strings.HasSuffix(got[0], c.want), got[0])
	}
	f, err := Find("combined")
	require.NoError(t, err)
	_, err = NewReader(strings.NewReader(""), f, Options{Want: []string{"host"}})
	assert.EqualError(t, err, `these logs have no field "host": use user, referer, agent, query:NAME`)
	_, err = Find("iis")
	assert.EqualError(t, err, `unknown kind of log "iis": use combined, nginx, apache, caddy, envoy, alb, haproxy, json, csv`)
}

func TestFields(t *testing.T) {
	end := End
	for _, c := range []struct {
		format, text, want string
		o                  Options
	}{
		{"json", `{"t":"2026-03-01T10:00:00.5+01:00","p":"/a?x=1","http.status":200,"d":{"ms":250},"ip":"[2001:db8::1]:80","n":3,"who":"acme"}`,
			"2026-03-01T09:00:00.25Z 250ms GET /a x=1 200 2001:db8::1 |acme|3 \"acme\"",
			Options{Fields: "time=t,path=p,status=http.status,took=d.ms:ms,ip=ip,units=n,origin=who", Stamp: &end, Want: []string{"who"}}},
		{"json", `{"t":1772359200123,"r":"orders"}`, "2026-03-01T10:00:00.123Z ? GET   0  orders||1", Options{Fields: "time=t,resource=r"}},
		{"json", `{"t":1772359200,"r":"PUT /a HTTP/1.1"}`, "2026-03-01T10:00:00Z~ ? PUT /a  0 ", Options{Fields: "time=t,request=r"}},
		{"csv", "\ufefftime,\"the path\",ms\n2026-03-01T10:00:00Z,\"/a,\"\"b\",1.5\n", `2026-03-01T10:00:00Z~ 1.5ms GET /a,"b  0  "1.5"`,
			Options{Fields: "time=time,path=the path,took=ms:ms", Want: []string{"ms"}}},
		{"csv", "/a,1772359200.5,POST,10.0.0.1\n", "2026-03-01T10:00:00.5Z ? POST /a  0 10.0.0.1", Options{Fields: "time=2,path=1,method=3,ip=4"}},
	} {
		got, stats := all(t, c.format, c.text, c.o)
		assert.Equal(t, []string{c.want}, got, "%s: %+v", c.text, stats)
	}
	for text, want := range map[string]string{
		"":                       "JSON lines and CSV need --fields",
		"time=t":                 "--fields needs time, and one of resource, path and request",
		"path=p":                 "--fields needs time",
		"time=t,path=p,took=d:m": `--fields: took has the unit "m": use s, ms, us or ns`,
		"time=t,path=p,time=u":   "--fields: time occurs twice",
		"tiem=t,path=p":          `--fields: "tiem=t": use PART=FIELD`,
	} {
		_, err := ParseFields(text)
		assert.ErrorContains(t, err, want, text)
	}
	f, err := Find("csv")
	require.NoError(t, err)
	_, err = NewReader(strings.NewReader(""), f, Options{Fields: "time=1,path=p"})
	assert.EqualError(t, err, "--fields has names and numbers of columns: use either")
	_, err = NewReader(strings.NewReader(""), f, Options{Fields: "time=0,path=2"})
	assert.EqualError(t, err, "column 0: use 1 to 1000")
}

// Bad lines are counted and the first ones kept. They don't end the log.
func TestBadLines(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	text := strings.Join([]string{
		commonLine, "", "rubbish", strings.Replace(commonLine, "17/May", "17/Moy", 1), strings.Replace(commonLine, "GET /", "\\x16\\x03", 1),
		strings.Replace(commonLine, " 200 ", " 20 ", 1), long, commonLine + ` "` + long, commonLine + ` "open`, commonLine,
	}, "\r\n")
	got, stats := all(t, "combined", text, Options{})
	assert.Len(t, got, 3, "two whole lines, and one that was cut within its referer")
	assert.EqualValues(t, 9, stats.Lines)
	assert.EqualValues(t, 6, stats.Bad)
	var problems []string
	for _, b := range stats.Samples {
		assert.LessOrEqual(t, len(b.Text), sampleLength)
		problems = append(problems, fmt.Sprint(b.Line, " ", b.Problem))
	}
	assert.Equal(t, []string{"3 line has another form", "4 no readable time", "5 no request line", "6 no readable status", "7 line is longer than 64 KiB"}, problems)

	exact := commonLine + ` "` + strings.Repeat("x", MaxLine-len(commonLine)-3) + `"`
	got, stats = all(t, "combined", exact+"\r\n"+exact, Options{})
	assert.Len(t, got, 2, "%+v", stats)

	fails := errors.New("disk")
	f, _ := Find("combined")
	r, err := NewReader(io.MultiReader(strings.NewReader(commonLine+"\n"+long), failing{fails}), f, Options{})
	require.NoError(t, err)
	_, err = r.Next()
	require.NoError(t, err)
	_, err = r.Next()
	assert.ErrorIs(t, err, fails)
}

type failing struct{ error }

func (f failing) Read([]byte) (int, error) { return 0, f.error }

func TestDetect(t *testing.T) {
	for line, want := range map[string]string{
		commonLine: "combined", fullLine: "combined", caddyText: "caddy", envoyText: "envoy", albText: "alb", haproxyText: "haproxy",
		"": "", "{}": "", "rubbish": "", "http rubbish": "",
	} {
		f, ok := Detect([]byte(line + "\n"))
		assert.Equal(t, want, f.Name, line)
		assert.Equal(t, want != "", ok)
	}
	f, again, ok, err := Guess(strings.NewReader("rubbish\n" + albText))
	require.NoError(t, err)
	require.True(t, ok)
	assert.Equal(t, "alb", f.Name)
	text, err := io.ReadAll(again)
	require.NoError(t, err)
	assert.Equal(t, "rubbish\n"+albText, string(text))
}

func TestTimes(t *testing.T) {
	for text, want := range map[string]string{
		"17/May/2015:10:05:03 +0000": "2015-05-17T10:05:03Z~", "17/May/2015:10:05:03": "2015-05-17T10:05:03Z~",
		"17/May/2015:10:05:03.25 -0130": "2015-05-17T11:35:03.25Z", "2015-05-17T10:05:03Z": "2015-05-17T10:05:03Z~",
		"1431857103": "2015-05-17T10:05:03Z~", "1431857103.000": "2015-05-17T10:05:03Z", "1431857103.5": "2015-05-17T10:05:03.5Z",
		"1431857103.1234567891": "2015-05-17T10:05:03.123456789Z", "1431857103500": "2015-05-17T10:05:03.5Z", "1431857103500000": "2015-05-17T10:05:03.5Z",
		"1431857103500000000": "2015-05-17T10:05:03.5Z",
		"":                    "", "-": "", "0": "", "NaN": "", "-1431857103": "", "1.4318571035e9": "", "9e18": "", "1e300": "", "99999999999999999999": "", "1431857103.5x": "",
		"17/May/0001:10:05:03 +0000": "", "32/May/2015:10:05:03 +0000": "", "17/ayJ/2015:10:05:03 +0000": "", "17/May/2015:10:05:03 +00x0": "",
		"17/May/2015:24:05:03 +0000": "", "9999-01-01T00:00:00Z": "", "17/May/2015:10:05:03.": "",
	} {
		at, coarse, ok := timestamp([]byte(text))
		got := ""
		if ok {
			if got = time.Unix(0, at).UTC().Format(time.RFC3339Nano); coarse {
				got += "~"
			}
		}
		assert.Equal(t, want, got, text)
	}
	for text, want := range map[string]time.Duration{"0.25": 250 * time.Millisecond, "-1": -1, "1e300": MaxTook, "15ms": 15 * time.Millisecond, "0": 0} {
		d, ok := duration([]byte(text), time.Second)
		assert.True(t, ok, text)
		assert.Equal(t, want, d, text)
	}
	for _, text := range []string{"", "x", "NaN"} {
		_, ok := duration([]byte(text), time.Second)
		assert.False(t, ok, text)
	}
}

// Whatever a line holds, it is read or counted, and what is read is within its bounds.
func FuzzLine(f *testing.F) {
	for i, line := range []string{fullLine, fullLine + " 0.250 1431857103.750", commonLine + " 12", caddyText, envoyText, albText, haproxyText, `{"t":1,"p":"/"}`, "1,/a\n2,\"/b"} {
		f.Add(uint8(i), []byte(line))
	}
	f.Fuzz(func(t *testing.T, kind uint8, text []byte) {
		format := formats[int(kind)%len(formats)]
		o := Options{Want: []string{"query:x"}, Fields: "time=t,path=p,took=d,ip=ip,units=n"}
		if format.Name == "csv" {
			o.Fields = "time=1,path=2,took=3,ip=4,units=5"
		}
		r, err := NewReader(strings.NewReader(string(text)), format, o)
		require.NoError(t, err)
		n := NewNamer(Style(kind % 2))
		good := int64(0)
		for {
			rec, err := r.Next()
			if err != nil {
				require.ErrorIs(t, err, io.EOF)
				break
			}
			good++
			if rec.At < earliest-int64(MaxTook) || rec.At > latest || rec.Took > MaxTook || rec.Took < -1 || rec.Units < 1 || len(rec.Values) != 1 {
				t.Fatalf("%+v", rec)
			}
			n.Learn(rec.Method, rec.Path)
			n.Name(rec.Method, rec.Path)
		}
		if s := r.Stats(); good+s.Bad > s.Lines || good+s.Bad < s.Lines-1 {
			t.Fatalf("%d read, %+v", good, s)
		}
	})
}
