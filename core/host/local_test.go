package host_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core/host"
	"github.com/penstock-go/penstock/internal/proof/books"
)

func TestMain(m *testing.M) { books.Main(m) }

// tree holds the files of a machine, by name.
type tree map[string]string

func (tr tree) with(more tree) tree {
	all := maps.Clone(tr)
	maps.Copy(all, more)
	return all
}

// onDisk writes a tree, and returns its path and a function to change it.
func onDisk(t *testing.T, tr tree) (root string, change func(tree)) {
	t.Helper()
	root = t.TempDir()
	change = func(tr tree) {
		for name, text := range tr {
			file := filepath.Join(root, filepath.FromSlash(name))
			require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
			require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
		}
	}
	change(tr)
	return root, change
}

// machineOf returns a machine after 100,000 ticks, given its busy ticks and those of this process.
func machineOf(busy, process int) tree {
	return tree{
		"proc/loadavg":   "1.25 0.80 0.50 2/345 6789\n",
		"proc/stat":      fmt.Sprintf("cpu  %d 0 10 %d 5 0 0 0 3 0\ncpu0 1 2 3 4 5 6 7 8 9 10\nintr 1\n", busy-10, 100_000-busy-5),
		"proc/self/stat": fmt.Sprintf("42 (a (b) c) S 1 42 42 0 -1 4194304 100 0 0 0 %d 10 0 0 20 0 8 0 100 1000 10\n", process-10),
	}
}

func later(busy, total, process int) tree {
	m := machineOf(busy, process)
	m["proc/stat"] = fmt.Sprintf("cpu  %d 0 10 %d 5 0 0 0 3 0\n", busy-10, total-busy-5)
	return m
}

// CPU returns the used share of the available time: of the control groups' quota if there is one,
// in either version, and of the machine otherwise. known bug 93
func TestCPU(t *testing.T) {
	v1 := func(dir string, quota, used int) tree {
		return tree{
			dir + "/cpu.cfs_quota_us": fmt.Sprintln(quota), dir + "/cpu.cfs_period_us": "100000\n",
			dir + "/cpuacct.usage": fmt.Sprintln(used * 1e6), // ms
		}
	}
	v2 := func(dir, limit string, used int) tree {
		return tree{
			dir + "/cpu.max":  limit + "\n",
			dir + "/cpu.stat": fmt.Sprintf("usage_usec %d\nuser_usec 1\nnr_periods 0\n", used*1000),
		}
	}
	const cg = "sys/fs/cgroup"
	own := func(line string) tree { return tree{"proc/self/cgroup": line + "\n"} }
	// In each second the machine is busy for half of its 800 ticks, and this process for 20 of
	// them; the group uses 125 ms.
	busy := machineOf(50_000, 1000)
	then := later(50_400, 100_800, 1020)
	process := 0.2 / float64(runtime.NumCPU())
	for _, tt := range []struct {
		name          string
		before, after tree
		want          float64
	}{
		{"no groups", busy, then, max(0.5, process)},
		{"the process has few processors", machineOf(50_000, 1000), later(50_001, 100_800, 1000+80*runtime.NumCPU()), 0.8},

		{"v2, a quarter of a CPU", busy.with(own("0::/")).with(v2(cg, "25000 100000", 1000)), then.with(v2(cg, "25000 100000", 1125)), 0.5},
		{"v2, a quarter, all of it", busy.with(own("0::/")).with(v2(cg, "25000 100000", 1000)), then.with(v2(cg, "25000 100000", 1250)), 1},
		{"v2, two CPUs", busy.with(own("0::/")).with(v2(cg, "200000 100000", 0)), then.with(v2(cg, "200000 100000", 500)), 0.25},
		{"v2, max", busy.with(own("0::/")).with(v2(cg, "max 100000", 0)), then.with(v2(cg, "max 100000", 125)), max(0.5, process)},
		{"v2, the enclosing group is fuller", busy.with(own("0::/pod/app")).with(v2(cg+"/pod/app", "100000 100000", 0)).with(v2(cg+"/pod", "200000 100000", 0)),
			then.with(v2(cg+"/pod/app", "100000 100000", 125)).with(v2(cg+"/pod", "200000 100000", 1800)), 0.9},
		{"v2, only the enclosing group has a share", busy.with(own("0::/pod/app")).with(v2(cg+"/pod/app", "max 100000", 0)).with(v2(cg+"/pod", "50000 100000", 0)),
			then.with(v2(cg+"/pod/app", "max 100000", 125)).with(v2(cg+"/pod", "50000 100000", 300)), 0.6},
		{"v2, the name is the host's", busy.with(own("0::/kubepods/pod7/abc")).with(v2(cg, "25000 100000", 0)), then.with(v2(cg, "25000 100000", 125)), 0.5},
		{"v2, no files", busy.with(own("0::/user.slice")), then, max(0.5, process)},
		{"v2, the share is changed", busy.with(own("0::/")).with(v2(cg, "25000 100000", 0)), then.with(v2(cg, "50000 100000", 125)), 0.25},

		{"v1, a quarter of a CPU", busy.with(own("5:memory:/x\n4:cpu,cpuacct:/docker/7\n1:name=systemd:/")).with(v1(cg+"/cpu,cpuacct/docker/7", 25000, 0)),
			then.with(v1(cg+"/cpu,cpuacct/docker/7", 25000, 125)), 0.5},
		{"v1, in the container's own location", busy.with(own("4:cpuacct,cpu:/docker/7")).with(v1(cg+"/cpu", 25000, 0)),
			then.with(v1(cg+"/cpu", 25000, 250)), 1},
		{"v1, no share", busy.with(own("4:cpu,cpuacct:/")).with(v1(cg+"/cpu,cpuacct", -1, 0)), then.with(v1(cg+"/cpu,cpuacct", -1, 125)), max(0.5, process)},
		{"v1, separate controllers", busy.with(own("2:cpuacct:/a\n1:cpu:/a\n0::/")).with(tree{
			cg + "/cpu/a/cpu.cfs_quota_us": "25000\n", cg + "/cpu/a/cpu.cfs_period_us": "100000\n", cg + "/cpuacct/a/cpuacct.usage": "0\n"}),
			then.with(tree{cg + "/cpuacct/a/cpuacct.usage": "125000000\n"}), 0.5},
		{"v1 and v2", busy.with(own("1:cpu:/\n0::/")).with(v1(cg+"/cpu", 25000, 0)).with(v2(cg, "max 100000", 0)),
			then.with(v1(cg+"/cpu", 25000, 125)), 0.5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root, change := onDisk(t, tt.before)
			source := host.Local(root)
			use, err := source.CPU(0)
			require.NoError(t, err)
			assert.Negative(t, use, "the use is unknown before the second sample")
			change(tt.after)
			use, err = source.CPU(int64(time.Second))
			require.NoError(t, err)
			assert.InDelta(t, tt.want, use, 1e-9)
			again, err := source.CPU(int64(time.Second))
			require.NoError(t, err)
			assert.InDelta(t, use, again, 0, "at the same instant")
			// After a second without use, the new sample counts for one half.
			half, err := source.CPU(int64(2 * time.Second))
			require.NoError(t, err)
			if tt.want != max(0.5, process) && tt.want != 0.8 { // in these cases the ticks stand still, too
				assert.InDelta(t, tt.want/2, half, 1e-9)
			}
		})
	}
}

func TestLoad(t *testing.T) {
	root, change := onDisk(t, machineOf(50, 20))
	source := host.Local(root)
	load, err := source.Load(0)
	require.NoError(t, err)
	assert.InDelta(t, 1.25, load, 0)
	change(tree{"proc/loadavg": "NaN 1 1"})
	_, err = source.Load(0)
	require.EqualError(t, err, `proc/loadavg begins with "NaN", not with a number`)
}

// Missing files and malformed numbers are errors, and a restarted count doesn't make the use
// negative.
func TestOddMachines(t *testing.T) {
	empty := host.Local(t.TempDir())
	_, err := empty.Load(0)
	require.ErrorContains(t, err, "proc/loadavg")
	_, err = empty.CPU(0)
	require.ErrorContains(t, err, "proc/stat")

	for want, odd := range map[string]tree{
		`proc/stat begins with "intr 1", not with the times of the CPU`:      {"proc/stat": "intr 1\n"},
		`proc/stat: strconv.ParseInt`:                                        {"proc/stat": "cpu 1 x 2 3 4\n"},
		`proc/self/stat has 2 fields after the name, not 13 or more`:         {"proc/self/stat": "1 (x) S 1\n"},
		`proc/self/stat: strconv.ParseInt`:                                   {"proc/self/stat": "1 (x) S 1 2 3 4 5 6 7 8 9 10 x 12 13\n"},
		`sys/fs/cgroup/cpu.max: 0 of 100000 microseconds is not a CPU share`: {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "0 100000"},
		`sys/fs/cgroup/cpu.max: strconv.ParseInt`:                            {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "100000"},
		`sys/fs/cgroup/cpu.stat has no usage_usec`: {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "1 1",
			"sys/fs/cgroup/cpu.stat": "user_usec 1\n"},
	} {
		root, change := onDisk(t, machineOf(50_000, 1000).with(odd))
		source := host.Local(root)
		_, err := source.CPU(0)
		require.ErrorContains(t, err, want)
		change(machineOf(50_000, 1000).with(tree{"proc/self/cgroup": "no line of groups\n"}))
		use, err := source.CPU(1)
		require.NoError(t, err)
		assert.Negative(t, use, "not to be compared with earlier samples")
		change(machineOf(40_000, 500))
		use, err = source.CPU(2)
		require.NoError(t, err)
		assert.Negative(t, use, "the counters went back: the use is unknown")
	}
}

// If this machine has such files, its numbers are in range.
func TestThisMachine(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no /proc")
	}
	source := host.Local("/")
	load, err := source.Load(0)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, load, 0.0)
	_, err = source.CPU(0)
	require.NoError(t, err)
	use, err := source.CPU(int64(time.Hour))
	require.NoError(t, err)
	assert.LessOrEqual(t, use, 1.1)
}
