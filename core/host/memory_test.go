package host_test

import (
	"fmt"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core/host"
)

const mib = 1 << 20

// Memory reports the fullest control group with a limit, under cgroup v1 or v2, excluding pages that
// the kernel reclaims first, or the process if there is no limit.
func TestMemory(t *testing.T) {
	const cg = "sys/fs/cgroup"
	bare := tree{
		"proc/meminfo":    "MemTotal:       1048576 kB\nMemFree: 7 kB\n", // 1 GiB
		"proc/self/statm": fmt.Sprintf("9000 %d 3 4 0 5 0\n", 256*mib/os.Getpagesize()),
	}
	process := host.Memory{Used: 256 * mib, Limit: 1024 * mib}
	own := func(line string) tree { return tree{"proc/self/cgroup": line + "\n"} }
	v2 := func(dir, limit string, used, cached int) tree {
		return tree{
			dir + "/memory.max": limit + "\n", dir + "/memory.high": "max\n",
			dir + "/memory.current": fmt.Sprintln(used * mib),
			dir + "/memory.stat":    fmt.Sprintf("anon 1\nfile 2\ninactive_anon 3\ninactive_file %d\n", cached*mib),
		}
	}
	v1 := func(dir string, limit int64, used, cached int) tree {
		return tree{
			dir + "/memory.limit_in_bytes": fmt.Sprintln(limit), dir + "/memory.usage_in_bytes": fmt.Sprintln(used * mib),
			dir + "/memory.stat": fmt.Sprintf("cache 1\ninactive_file 2\ntotal_inactive_file %d\n", cached*mib),
		}
	}
	const mib200, mib100, none = "209715200", "104857600", 9223372036854771712
	for _, tt := range []struct {
		name string
		files,
		more tree
		want host.Memory
	}{
		{"no groups", nil, nil, process},
		{"v2", own("0::/"), v2(cg, mib200, 150, 30), host.Memory{Used: 120 * mib, Limit: 200 * mib}},
		{"v2, max", own("0::/"), v2(cg, "max", 150, 30), process},
		{"v2, more than the machine has", own("0::/"), v2(cg, "1073741824", 150, 30), process},
		{"v2, high", own("0::/"), v2(cg, mib200, 150, 30).with(tree{cg + "/memory.high": mib100}), host.Memory{Used: 120 * mib, Limit: 100 * mib}},
		{"v2, only high", own("0::/"), v2(cg, "max", 50, 0).with(tree{cg + "/memory.high": mib100}), host.Memory{Used: 50 * mib, Limit: 100 * mib}},
		{"v2, the enclosing group is fuller", own("0::/pod/app"), v2(cg+"/pod/app", mib100, 40, 0).with(v2(cg+"/pod", mib200, 190, 0)),
			host.Memory{Used: 190 * mib, Limit: 200 * mib}},
		{"v2, the enclosing group is emptier", own("0::/pod/app"), v2(cg+"/pod/app", mib100, 60, 0).with(v2(cg+"/pod", mib200, 110, 0)),
			host.Memory{Used: 60 * mib, Limit: 100 * mib}},
		{"v2, the name is the host's", own("0::/kubepods/pod7/abc"), v2(cg, mib200, 20, 0), host.Memory{Used: 20 * mib, Limit: 200 * mib}},
		{"v2, no files", own("0::/user.slice"), nil, process},
		{"v2, more cached than used", own("0::/"), v2(cg, mib200, 20, 30), host.Memory{Used: 0, Limit: 200 * mib}},
		{"v1", own("9:cpu:/x\n5:memory:/docker/7\n0::/"), v1(cg+"/memory/docker/7", 200*mib, 150, 30), host.Memory{Used: 120 * mib, Limit: 200 * mib}},
		{"v1, in the container's own location", own("5:memory:/docker/7"), v1(cg+"/memory", 200*mib, 150, 0), host.Memory{Used: 150 * mib, Limit: 200 * mib}},
		{"v1, no limit", own("5:memory:/"), v1(cg+"/memory", none, 150, 30), process},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root, _ := onDisk(t, bare.with(tt.files).with(tt.more))
			got, err := host.Local(root).Memory(0)
			require.NoError(t, err)
			assert.Equal(t, tt.want, got)
		})
	}
	t.Run("a sandbox without memory.stat", func(t *testing.T) {
		files := bare.with(own("0::/")).with(v2(cg, mib200, 150, 30))
		delete(files, cg+"/memory.stat")
		root, _ := onDisk(t, files)
		got, err := host.Local(root).Memory(0)
		require.NoError(t, err)
		assert.Equal(t, host.Memory{Used: 150 * mib, Limit: 200 * mib}, got)
	})
	for want, odd := range map[string]tree{
		"proc/meminfo has no MemTotal":                            {"proc/meminfo": "MemFree: 7 kB\n"},
		"proc/meminfo: strconv.ParseInt":                          {"proc/meminfo": "MemTotal: x kB\n"},
		"proc/self/statm has 1 fields, not 2 or more":             {"proc/self/statm": "17\n"},
		"proc/self/statm: strconv.ParseInt":                       {"proc/self/statm": "17 x\n"},
		"sys/fs/cgroup/memory.max: strconv.ParseInt":              own("0::/").with(tree{cg + "/memory.max": "much"}),
		"sys/fs/cgroup/memory.current: strconv.ParseInt":          own("0::/").with(tree{cg + "/memory.max": "100"}),
		"sys/fs/cgroup/memory.stat: strconv.ParseInt":             own("0::/").with(v2(cg, mib200, 1, 1)).with(tree{cg + "/memory.stat": "inactive_file x\n"}),
		"sys/fs/cgroup/memory/memory.limit_in_bytes: strconv.Par": own("5:memory:/").with(tree{cg + "/memory/memory.limit_in_bytes": "much"}),
	} {
		root, _ := onDisk(t, bare.with(odd))
		_, err := host.Local(root).Memory(0)
		require.ErrorContains(t, err, want)
	}
}

// An unknown share is below every threshold.
func TestShare(t *testing.T) {
	assert.InDelta(t, 0.25, host.Memory{Used: 1, Limit: 4}.Share(), 0)
	assert.Negative(t, host.Memory{Used: 1}.Share())
	if runtime.GOOS == "linux" {
		m, err := host.Local("/").Memory(0)
		require.NoError(t, err)
		assert.Positive(t, m.Used)
		assert.Less(t, m.Share(), 1.1)
	}
}
