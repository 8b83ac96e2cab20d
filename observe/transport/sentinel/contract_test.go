package sentinel

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
	"github.com/penstock-go/penstock/core/host"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/system"
)

// nodeVo is a node in the form that the dashboard's JSON reader accepts: only whole numbers.
type nodeVo struct {
	ID, ParentID, Resource                                                       string
	ThreadNum                                                                    int32
	PassQps, BlockQps, TotalQps, AverageRt, SuccessQps, ExceptionQps             int64
	OneMinutePass, OneMinuteBlock, OneMinuteException, OneMinuteTotal, Timestamp int64
}

func read[T any](t *testing.T, status int, body string) (v T) {
	t.Helper()
	require.Equal(t, http.StatusOK, status, body)
	dec := json.NewDecoder(strings.NewReader(body))
	dec.DisallowUnknownFields()
	require.NoError(t, dec.Decode(&v), body)
	return v
}

// busyLab has two resources with a second of traffic, one nested below the other.
func busyLab(t *testing.T, cfg Config) *lab {
	l := newLab(t, cfg)
	require.NoError(t, l.LoadRules(api.RuleSet{Flow: []flow.Rule{{ID: "orders", Resource: "GET /orders", Threshold: 3}}}))
	l.call(5, 10*time.Millisecond, "GET /orders", "acme")
	l.call(2, 20*time.Millisecond, "a|b\nc", "")
	return l
}

// The test sends each command of the page as SentinelApiClient and MetricFetcher of dashboard 1.8.9 do,
// and as people do with curl.
func TestDashboardReads(t *testing.T) {
	l := busyLab(t, Config{})
	d := l.dashboard()
	now := start.Add(70 * time.Millisecond)

	t.Run("jsonTree", func(t *testing.T) {
		status, body := d.get("jsonTree", "type", "root")
		nodes := read[[]nodeVo](t, status, body)
		require.Len(t, nodes, 4)
		assert.Equal(t, []string{"machine-root", "sentinel_default_context", "GET /orders", "a|b\nc"},
			[]string{nodes[0].Resource, nodes[1].Resource, nodes[2].Resource, nodes[3].Resource})
		seen := map[string]bool{"": true}
		for i, n := range nodes {
			assert.True(t, seen[n.ParentID], "parents come first")
			assert.Equal(t, i == 0, n.ParentID == "", "only the root has none")
			assert.False(t, seen[n.ID])
			seen[n.ID] = true
		}
		assert.Equal(t, nodeVo{ID: nodes[2].ID, ParentID: nodes[1].ID, Resource: "GET /orders", PassQps: 3, BlockQps: 2, TotalQps: 5, AverageRt: 10, SuccessQps: 3,
			OneMinutePass: 3, OneMinuteBlock: 2, OneMinuteTotal: 5, Timestamp: now.UnixMilli()}, nodes[2])
		_, again := d.get("jsonTree", "type", "root")
		assert.Equal(t, body, again, "a node has the same id each time")
	})

	t.Run("clusterNode", func(t *testing.T) {
		for _, kind := range []string{"zero", "noZero", "notZero"} {
			status, body := d.get("clusterNode", "type", kind)
			nodes := read[[]nodeVo](t, status, body)
			require.Len(t, nodes, 2)
			assert.Equal(t, int64(2), nodes[0].BlockQps)
			assert.Empty(t, nodes[0].ID)
		}
		l.clock.Advance(2 * time.Minute)
		defer func() {
			l.call(5, 10*time.Millisecond, "GET /orders", "acme")
			l.call(2, 20*time.Millisecond, "a|b\nc", "")
		}()
		status, body := d.get("clusterNode", "type", "zero")
		assert.Len(t, read[[]nodeVo](t, status, body), 2)
		status, body = d.get("clusterNode", "type", "notZero")
		assert.Empty(t, read[[]nodeVo](t, status, body))
		assert.Equal(t, "[]", body)
	})

	t.Run("clusterNodeById", func(t *testing.T) {
		status, body := d.get("clusterNodeById", "id", "GET /orders")
		assert.Equal(t, int64(3), read[nodeVo](t, status, body).PassQps)
		_, body = d.get("clusterNodeById", "id", "nobody")
		assert.Equal(t, "{}", body)
		status, body = d.get("clusterNodeById")
		assert.Equal(t, http.StatusBadRequest, status)
		assert.Equal(t, "Invalid parameter: empty clusterNode name", body)
	})

	t.Run("tables", func(t *testing.T) {
		_, body := d.get("cnode", "id", "orders")
		assert.Equal(t, ""+
			"idx id          thread    pass      blocked   success    total    aRt   1m-pass   1m-block   1m-all   exception  \n"+
			"1   GET /orders 0         3.0       2.0       3.0        5.0      10.0  3         2          5        0.0        \n", body)
		_, body = d.get("cnode", "id", "nobody")
		assert.Equal(t, 1, strings.Count(body, "\n"))
		status, _ := d.get("cnode")
		assert.Equal(t, http.StatusBadRequest, status)

		want := "id: GET /orders\n\nidx originthreadNum passQps   blockQps   totalQps aRt   1m-pass   1m-block   1m-total \n"
		_, exact := d.get("origin", "id", "GET /orders")
		_, inside := d.get("origin", "id", "orders")
		assert.Equal(t, exact, inside)
		assert.Equal(t, want+"1   acme 0         3.0       2.0        5.0      10.0  3         2          5        \n", exact)
		_, body = d.get("origin", "id", "GET")
		assert.Equal(t, "Not find cNode with id GET", body, "not at the begin of a name")
	})

	t.Run("tree", func(t *testing.T) {
		_, whole := d.get("tree")
		assert.Contains(t, whole, "EntranceNode: machine-root(t:0 pq:5.0 bq:2.0 tq:7.0 rt:14.0 prq:5.0 1mp:5 1mb:2 1mt:7)\n"+
			"-EntranceNode: sentinel_default_context(")
		_, part := d.get("tree", "id", "sentinel_default_context")
		assert.True(t, strings.HasPrefix(part, "EntranceNode: sentinel_default_context("), part)
		_, likewise := d.get("tree", "id", "default")
		assert.Equal(t, part, likewise)
		_, none := d.get("tree", "id", "nobody")
		assert.Equal(t, "\r\n\r\nt:threadNum  pq:passQps  bq:blockQps  tq:totalQps  rt:averageRt  prq: passRequestQps 1mp:1m-pass 1mb:1m-block 1mt:1m-total\r\n", none)
	})

	t.Run("for people", func(t *testing.T) {
		_, body := d.get("version")
		assert.Regexp(t, `^1\.8\.9-\w+$`, body)
		status, body := d.get("basicInfo")
		info := read[struct{ Machine, IP string }](t, status, body)
		assert.Equal(t, "127.0.0.1", info.IP)
		_, body = d.get("getSwitch")
		assert.Equal(t, "Sentinel switch value: true", body)
		_, body = d.get("systemStatus")
		assert.JSONEq(t, `{"rqps":5,"qps":5,"b":2,"r":14,"t":0}`, body)
		status, body = d.get("api")
		list := read[[]struct{ URL, Desc string }](t, status, body)
		assert.Len(t, list, len(l.commands))
		assert.Equal(t, "/api", list[0].URL)
		_, body = d.get("getClusterMode")
		assert.Equal(t, `{"mode":-1,"lastModified":0,"clientAvailable":false,"serverAvailable":false}`, body)
	})
}

// metricNode is a line as parsed by the dashboard's MetricFetcher.
type metricNode struct {
	ms                                                                int64
	resource                                                          string
	pass, block, success, exception, rt, occupied, concurrency, class int64
}

func readMetrics(t *testing.T, body string) (all []metricNode) {
	t.Helper()
	for line := range strings.Lines(body) {
		parts := strings.Split(strings.TrimSuffix(line, "\n"), "|")
		require.Len(t, parts, 10, "%q", line)
		n := metricNode{resource: parts[1]}
		for i, to := range []*int64{&n.ms, nil, &n.pass, &n.block, &n.success, &n.exception, &n.rt, &n.occupied, &n.concurrency, &n.class} {
			if to == nil {
				continue
			}
			var err error
			*to, err = strconv.ParseInt(parts[i], 10, 64)
			require.NoError(t, err, "%q", line)
		}
		all = append(all, n)
	}
	return all
}

// MetricFetcher asks every six seconds for six seconds that ended two seconds ago, concurrently
// with others, and misses none. known bug 167
func TestDashboardFetchesMetrics(t *testing.T) {
	l := newLab(t, Config{})
	d := l.dashboard()
	ask := func(from, to time.Time) []metricNode {
		t.Helper()
		status, body := d.ask(http.MethodGet, fmt.Sprintf("%s/metric?startTime=%d&endTime=%d&refetch=false", d.url, from.UnixMilli(), to.UnixMilli()), "",
			http.Header{"Connection": {"close"}})
		require.Equal(t, http.StatusOK, status)
		return readMetrics(t, body)
	}
	assert.Empty(t, ask(start, start.Add(6*time.Second)))

	held, err := l.Entry(t.Context(), "held")
	require.NoError(t, err)
	for range 40 { // each second has one call more than the previous, and one is in flight throughout
		second := int(l.clock.Now()/int64(time.Second) - start.Unix())
		l.call(second+1, time.Millisecond, "GET /orders", "")
		l.clock.AdvanceTo(start.Add(time.Duration(second+1) * time.Second).UnixNano())
	}
	assert.Equal(t, []metricNode{{start.UnixMilli(), "held", 1, 0, 0, 0, 0, 0, 1, 0}}, ask(start, start)[2:], "the second is one more")
	held.Exit()

	fetched := make(map[int64]int64)
	for from := start; from.Before(start.Add(36 * time.Second)); from = from.Add(7 * time.Second) {
		for _, n := range ask(from, from.Add(6*time.Second)) {
			if n.resource == "GET /orders" {
				assert.NotContains(t, fetched, n.ms)
				fetched[n.ms] = n.pass
				assert.Equal(t, n.pass, n.success)
				assert.EqualValues(t, 1, n.rt)
			}
		}
	}
	assert.Len(t, fetched, 40)
	for ms, pass := range fetched {
		assert.Equal(t, (ms-start.UnixMilli())/1000+1, pass)
	}
	l.call(1, 0, "GET /orders", "")
	now := start.Add(40 * time.Second)
	assert.Empty(t, ask(now, now.Add(time.Second)), "a second that hasn't ended")
}

func TestMetric(t *testing.T) {
	l := busyLab(t, Config{})
	d := l.dashboard()
	l.clock.Advance(3 * time.Second)
	ms := start.UnixMilli()
	_, body := d.get("metric", "startTime", fmt.Sprint(ms))
	assert.Equal(t, fmt.Sprintf("%[1]d|GET /orders|3|2|3|0|10|0|0|0\n%[1]d|__total_inbound_traffic__|5|2|5|0|14|0|0|0\n%[1]d|a_b_c|2|0|2|0|20|0|0|0\n", ms), body)
	_, body = d.get("metric", "startTime", fmt.Sprint(ms), "maxLines", "1")
	assert.Equal(t, 1, strings.Count(body, "\n"))
	_, body = d.get("metric", "startTime", fmt.Sprint(ms+999), "endTime", fmt.Sprint(ms+999), "identity", "GET /orders")
	assert.Equal(t, fmt.Sprintf("%d|GET /orders|3|2|3|0|10|0|0|0\n", ms), body, "by whole seconds, and without the machine")
	_, body = d.get("metric")
	assert.Empty(t, body)
	for _, wrong := range []string{"startTime", "endTime", "maxLines"} {
		status, body := d.get("metric", "startTime", "1", wrong, "soon")
		assert.Equal(t, http.StatusBadRequest, status)
		assert.Equal(t, wrong+" must be a whole number", body)
	}
}

// The load is reported while a rule uses it.
func TestMetricOfTheMachine(t *testing.T) {
	l := newLab(t, Config{})
	guard, err := api.New(api.Config{Clock: l.clock, Host: fixedHost{}})
	require.NoError(t, err)
	defer func() { require.NoError(t, guard.Close()) }()
	require.NoError(t, guard.LoadRules(api.RuleSet{System: []system.Rule{{Metric: system.Load, Threshold: 100}, {Metric: system.CPU, Threshold: 0.9}}}))
	guard.Engine().Sampler().Sample()
	l.handler.guard = guard
	_, body := l.dashboard().get("metric", "startTime", "1")
	assert.Equal(t, fmt.Sprintf("%[1]d|__system_load__|25000|0|0|0|0|0|0|0\n%[1]d|__cpu_usage__|2500|0|0|0|0|0|0|0\n", start.UnixMilli()), body)
}

type fixedHost struct{}

func (fixedHost) Load(int64) (float64, error)       { return 2.5, nil }
func (fixedHost) CPU(int64) (float64, error)        { return 0.25, nil }
func (fixedHost) Memory(int64) (host.Memory, error) { return host.Memory{Used: 1, Limit: 2}, nil }

// Commands that only Sentinel has, and an empty command, are rejected. The dashboard detects that by
// the start of the text.
func TestUnknownCommands(t *testing.T) {
	d := newLab(t, Config{AllowRuleWrites: true}).dashboard()
	for _, name := range []string{
		"setSwitch", "setClusterMode", "cluster/client/fetchConfig", "cluster/client/modifyConfig", "cluster/server/info", "cluster/server/fetchConfig",
		"cluster/server/flowRules", "cluster/server/paramRules", "cluster/server/metricList", "cluster/server/modifyFlowRules", "cluster/server/modifyParamRules",
		"cluster/server/modifyFlowConfig", "cluster/server/modifyTransportConfig", "cluster/server/modifyNamespaceSet",
		"gateway/getRules", "gateway/updateRules", "gateway/getApiDefinitions", "gateway/updateApiDefinitions", "x", "Tree", "tree/",
	} {
		for _, ask := range []func(string, ...string) (int, string){d.get, d.post} {
			status, body := ask(name, "data", "[]")
			assert.Equal(t, http.StatusBadRequest, status, name)
			assert.Equal(t, "Unknown command `"+name+"`", body)
		}
	}
	status, body := d.get("")
	assert.Equal(t, http.StatusBadRequest, status)
	assert.Equal(t, "Invalid command", body)
	_, body = d.get("x%0a%1b[31m" + strings.Repeat("y", 500))
	assert.True(t, strings.HasPrefix(body, "Unknown command `x\\n\\x1b[31myyy") && len(body) < 150, body)
}

// The test sends rules as the dashboard's JSON writer does, each type with its keys.
func TestDashboardEditsRules(t *testing.T) {
	l := newLab(t, Config{AllowRuleWrites: true})
	d := l.dashboard()
	pushes := []struct{ kind, data string }{
		{"flow", `[{"clusterConfig":{"fallbackToLocalWhenFail":true,"sampleCount":10,"strategy":0,"thresholdType":0,"windowIntervalMs":1000},"clusterMode":false,"controlBehavior":0,"count":20.0,"grade":1,"limitApp":"default","maxQueueingTimeMs":500,"regex":false,"resource":"GET /orders","strategy":0,"warmUpPeriodSec":10},` +
			`{"clusterMode":false,"controlBehavior":2,"count":5.0,"grade":1,"limitApp":"acme","maxQueueingTimeMs":200,"resource":"träge & 100%+","strategy":0}]`},
		{"degrade", `[{"count":0.5,"grade":1,"limitApp":"default","minRequestAmount":5,"regex":false,"resource":"GET /orders","slowRatioThreshold":1.0,"statIntervalMs":1000,"timeWindow":10}]`},
		{"system", `[{"avgRt":-1,"highestCpuUsage":-1.0,"highestSystemLoad":-1.0,"maxThread":-1,"qps":100.0}]`},
		{"authority", `[{"limitApp":"acme,zeta","regex":false,"resource":"GET /orders","strategy":1}]`},
	}
	for _, p := range pushes {
		status, body := d.post("setRules", "type", p.kind, "data", p.data)
		assert.Equal(t, http.StatusOK, status, body)
		assert.Equal(t, "success", body)
	}
	status, body := d.post("setParamFlowRules", "data", `[{"burstCount":0,"clusterConfig":{"fallbackToLocalWhenFail":false,"sampleCount":10,"thresholdType":0,"windowIntervalMs":1000},"clusterMode":false,"controlBehavior":0,"count":5.0,"durationInSec":1,"grade":1,"limitApp":"default","maxQueueingTimeMs":0,"paramFlowItemList":[{"classType":"int","count":9,"object":"7"}],"paramIdx":0,"regex":false,"resource":"GET /orders"}]`)
	assert.Equal(t, http.StatusOK, status, body)
	assert.Equal(t, "success", body)

	set := l.Rules()
	assert.Len(t, set.Flow, 2)
	assert.Equal(t, "träge & 100%+", set.Flow[1].Resource)
	assert.Len(t, set.Breaker, 1)
	assert.Len(t, set.System, 1)
	assert.Len(t, set.Authority, 1)
	assert.Len(t, set.Hotspot, 1)
	assert.Contains(t, l.log.text(), "from=127.0.0.1 in=memory change=\"+2 ~0 -0\"")

	// Sending back what the dashboard has read changes nothing.
	for _, p := range pushes {
		status, list := d.get("getRules", "type", p.kind)
		assert.Equal(t, http.StatusOK, status)
		status, body = d.post("setRules", "type", p.kind, "data", list)
		assert.Equal(t, http.StatusOK, status, body)
	}
	_, list := d.get("getParamFlowRules")
	_, body = d.post("setParamFlowRules", "data", list)
	assert.Equal(t, "success", body)
	assert.Equal(t, set, l.Rules())

	// An empty list removes the rules of its type.
	_, body = d.post("setRules", "type", "FLOW", "data", "[]")
	assert.Equal(t, "success", body)
	assert.Empty(t, l.Rules().Flow)
	assert.Len(t, l.Rules().Breaker, 1)
	_, body = d.get("getRules", "type", "flow")
	assert.Equal(t, "[]", body)
}

// A rejected push changes nothing, and the error contains the reason.
func TestRefusedPushes(t *testing.T) {
	l := newLab(t, Config{AllowRuleWrites: true})
	d := l.dashboard()
	require.NoError(t, l.LoadRules(api.RuleSet{Flow: []flow.Rule{{Resource: "a", Threshold: 1}}}))
	before := l.Rules()
	good := `{"resource":"a","count":2,"grade":1}`
	for _, c := range []struct{ command, kind, data, want string }{
		{"setRules", "none", "[]", "invalid type"},
		{"setRules", "", "[]", "invalid type"},
		{"getRules", "none", "", "invalid type"},
		{"setParamFlowRules", "", "", "Bad data"},
		{"setRules", "flow", "", "flow-rules.json"},
		{"setRules", "flow", "{", "flow-rules.json"},
		{"setRules", "flow", `{"resource":"a"}`, "flow-rules.json"},
		{"setRules", "flow", "[" + good + `,{"resource":"b","count":-1,"grade":1}]`, "flow-rules.json:1:63: [1].count: is -1"},
		{"setRules", "flow", "[" + good + `,{"resource":"b","count":1,"grade":1,"nonsense":1}]`, "nonsense"},
		{"setRules", "flow", "[" + good + "," + good + "]", "the same rule"},
		{"setRules", "degrade", `[{"resource":"a","grade":1,"count":2,"timeWindow":1}]`, "degrade-rules.json"},
	} {
		ask := d.post
		if c.command == "getRules" {
			ask = d.get
		}
		status, body := ask(c.command, "type", c.kind, "data", c.data)
		assert.Equal(t, http.StatusBadRequest, status, "%s %s", c.kind, c.data)
		assert.Contains(t, body, c.want)
		assert.NotContains(t, body, "Unknown command")
	}
	assert.Equal(t, before, l.Rules())
}

// Java decodes the data twice, once more than the form requires.
func TestDataIsDecodedTwice(t *testing.T) {
	l := newLab(t, Config{AllowRuleWrites: true})
	d := l.dashboard()
	data := `[{"resource":"100%25 a+b","count":2,"grade":1}]`
	_, body := d.post("setRules", "type", "flow", "data", data)
	require.Equal(t, "success", body)
	assert.Equal(t, "100%25 a+b", l.Rules().Flow[0].Resource, "once, if that is JSON")
	_, body = d.post("setRules", "type", "flow", "data", url.QueryEscape(data))
	require.Equal(t, "success", body)
	assert.Equal(t, "100%25 a+b", l.Rules().Flow[0].Resource)
}
