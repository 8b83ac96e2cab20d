package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const untidy = `# What this file is.


# And more of it.

flow:

    # The orders.
    -   threshold:   100 # a second
        resource: 'GET /orders'
        id: "orders"   # as in the log

    # a comment of nothing

    - {threshold: 5, resource: GET /reports, behavior: throttle, maxWait: 2s} # in a row
    - id: everything
      # between the keys
      threshold: 1
      resource: "*"
      exclude:
      - GET /health # never
      - "GET /ready"


hotspot:
    - resource: GET /search
      exceptions: # of some
      - {threshold: 8, value: 7}
      threshold: 4
      index: 0
# at the end
`

const tidy = `# What this file is.

# And more of it.

flow:
  # The orders.
  - id: "orders"  # as in the log
    resource: 'GET /orders'
    threshold: 100  # a second

  # a comment of nothing

  - {resource: GET /reports, threshold: 5, behavior: throttle, maxWait: 2s}  # in a row
  - id: everything
    resource: "*"
    exclude:
      - GET /health  # never
      - "GET /ready"
    # between the keys
    threshold: 1

hotspot:
  - resource: GET /search
    index: 0
    threshold: 4
    exceptions:  # of some
      - {value: 7, threshold: 8}
# at the end
`

func TestFormat(t *testing.T) {
	assert.Equal(t, result{exitOK, tidy, ""}, penstock(t, untidy, "fmt"))
	assert.Equal(t, result{exitOK, tidy, ""}, penstock(t, tidy, "fmt", "-"), "it is formatted")
	assert.Equal(t, result{exitOK, tidy, ""}, penstock(t, strings.ReplaceAll(untidy, "\n", "\r\n"), "fmt"), "carriage returns")

	file := write(t, "rules.yaml", untidy)
	r := penstock(t, "", "fmt", "--check", file)
	assert.Equal(t, result{exitErrors, file + "\n", ""}, r)
	r = penstock(t, "", "fmt", "-d", file)
	assert.Equal(t, exitErrors, r.code)
	assert.Contains(t, r.out, "--- "+file+"\n+++ "+file+" (formatted)\n@@ -1,")
	assert.Contains(t, r.out, "\n-        resource: 'GET /orders'\n")
	assert.Contains(t, r.out, "\n+    resource: 'GET /orders'\n")
	assert.Equal(t, untidy, read(t, file), "nothing is written so far")

	require.NoError(t, os.Chmod(file, 0o640))
	link := filepath.Join(t.TempDir(), "link.yaml")
	require.NoError(t, os.Symlink(file, link))
	assert.Equal(t, result{}, penstock(t, "", "fmt", "-w", link))
	assert.Equal(t, tidy, read(t, file))
	info, err := os.Lstat(link)
	require.NoError(t, err)
	assert.NotZero(t, info.Mode()&os.ModeSymlink, "the link is still one")
	info, err = os.Stat(file)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o640), info.Mode().Perm())
	assert.Equal(t, result{}, penstock(t, "", "fmt", "--check", file))
	assert.Equal(t, result{}, penstock(t, "", "fmt", "-d", file))
}

// Multi-line texts stay as they are, even if parts look like comments.
func TestFormatTexts(t *testing.T) {
	const text = "flow:\n- threshold: 1\n  resource: |-\n    a\n\n\n    b # no comment\n- {resource: y,\n   threshold: 2}\n" +
		"- resource: >-\n    z\n    w\n  threshold: 3\n- resource: \"q\n    r\"\n\n  threshold: 3 # end\n"
	r := penstock(t, text, "fmt")
	require.Equal(t, exitOK, r.code, r.err)
	assert.Equal(t, parse(t, text), parse(t, r.out))
	assert.Equal(t, r, penstock(t, r.out, "fmt"))
	assert.Contains(t, r.out, "  - resource: |-\n      a\n\n\n      b # no comment\n    threshold: 1\n")
}

// A flow mapping before a comment gets no trailing comma, and one pass is enough.
func TestFormatRowBeforeAComment(t *testing.T) {
	const want = "flow:\n  - {resource: x, threshold: 1}\n  # of the first\n\n  # of the second\n\n  - resource: y\n    threshold: 2\n"
	const text = "flow:\n  - {threshold: 1, resource: x}\n  # of the first\n# of the second\n\n  - threshold: 2\n    resource: y\n"
	assert.Equal(t, result{exitOK, want, ""}, penstock(t, text, "fmt"))
	assert.Equal(t, result{exitOK, want, ""}, penstock(t, want, "fmt"))
}

func TestFormatJSON(t *testing.T) {
	const want = `{
  "dialect": "native",
  "flow": [
    {
      "resource": "GET /a<b> \"☃\"",
      "threshold": 1.50e1
    }
  ]
}
`
	assert.Equal(t, result{exitOK, want, ""}, penstock(t, `{"dialect":"native","flow":[{"threshold":1.50e1,"resource":"GET /a<b> \"\u2603\""}]}`, "fmt"))
	assert.Equal(t, result{exitOK, want, ""}, penstock(t, want, "fmt"))
}

// A file that can't be read, isn't native or would lose something is left alone; the other files are
// formatted.
func TestFormatLeavesAlone(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.yaml": "flow:\n  - {resource: x, treshold: 1}\n",
		"b.json": `[{"resource": "GET /orders", "count": 5}]`,
		"c.yaml": "flow:\n  - {threshold: 1, resource: x}\n",
		"d.yaml": "flow:\n  - {resource: x, # an odd place\n     threshold: 1}\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	before := read(t, filepath.Join(dir, "d.yaml"))
	r := penstock(t, "", "fmt", "-w", dir)
	assert.Equal(t, exitErrors, r.code)
	assert.Contains(t, r.err, "a.yaml:2:19: error: flow[0].treshold: unknown field")
	assert.Contains(t, r.err, "b.json: error: is a file of sentinel-java: convert it with penstock convert first")
	assert.Equal(t, "flow:\n  - {resource: x, threshold: 1}\n", read(t, filepath.Join(dir, "c.yaml")))
	if read(t, filepath.Join(dir, "d.yaml")) != before {
		assert.Contains(t, read(t, filepath.Join(dir, "d.yaml")), "# an odd place")
	}
	assert.Equal(t, exitErrors, penstock(t, "flow: []", "fmt", "-w", "-").code)
}

// For any file, formatting keeps the meaning and all comments, and one pass is enough.
func TestFormatKeepsTheMeaning(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	refused := 0
	for round := range 300 {
		text := drawFile(rng)
		set := parse(t, text)
		once := penstock(t, text, "fmt")
		if once.code != exitOK {
			require.Contains(t, once.err, "a comment would be lost", text)
			refused++
			continue
		}
		require.Equal(t, set, parse(t, once.out), "round %d:\n%s", round, text)
		require.Equal(t, comments([]byte(text)), comments([]byte(once.out)), "round %d:\n%s", round, text)
		require.Equal(t, once, penstock(t, once.out, "fmt"), "round %d:\n%s", round, text)
	}
	assert.Zero(t, refused)
}

// drawFile draws a rule file as people write it: with keys in any order, comments and empty lines in
// many places, and indentation of any width.
func drawFile(rng *rand.Rand) string {
	var b strings.Builder
	comment := 0
	note := func(indent int) {
		for range rng.IntN(3) {
			switch rng.IntN(4) {
			case 0:
				b.WriteString("\n")
			case 1:
				comment++
				fmt.Fprintf(&b, "%s# comment %d: \"x\" 'y' #z\n", strings.Repeat(" ", indent), comment)
			}
		}
	}
	end := func() {
		if rng.IntN(4) == 0 {
			comment++
			fmt.Fprintf(&b, " # end %d", comment)
		}
		b.WriteString("\n")
	}
	note(0)
	for _, family := range []string{"flow", "isolation", "breaker"} {
		if family != "flow" && rng.IntN(2) == 0 {
			continue
		}
		b.WriteString(family + ":")
		end()
		dash := rng.IntN(4)
		inner := dash + 2 + rng.IntN(3)
		for i := range 1 + rng.IntN(4) {
			note(dash)
			fields := []string{fmt.Sprintf("id: %s-%d", family, i), fmt.Sprintf("resource: \"GET /%d # no comment\"", i), "threshold: 1"}
			if family == "breaker" {
				fields = append(fields, "strategy: errorCount", "recovery: 5s")
			}
			if rng.IntN(3) == 0 {
				fields = append(fields, "mode: shadow")
			}
			rng.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
			if rng.IntN(4) == 0 {
				b.WriteString(strings.Repeat(" ", dash) + "- {" + strings.Join(fields, ", ") + "}")
				end()
				continue
			}
			for j, f := range fields {
				if j == 0 {
					b.WriteString(strings.Repeat(" ", dash) + "-" + strings.Repeat(" ", inner-dash-1))
				} else {
					note(inner)
					b.WriteString(strings.Repeat(" ", inner))
				}
				b.WriteString(f)
				end()
			}
		}
		note(0)
	}
	return b.String()
}

// The rule files of this repository are formatted.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "examples", "*", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		assert.Equal(t, result{}, penstock(t, "", "fmt", "-d", file))
		assert.Equal(t, exitOK, penstock(t, "", "check", "--strict", file).code, file)
	}
}

func TestLineDiff(t *testing.T) {
	var old, new []string
	for i := range 40 {
		old = append(old, fmt.Sprint(i))
	}
	new = slices.Clone(old)
	new[1] = "x"
	new = slices.Delete(new, 20, 21)
	new = append(new, "end")
	var text []string
	for _, h := range hunks(old, new) {
		text = append(text, h.head())
		text = append(text, h.lines...)
	}
	assert.Equal(t, []string{
		"@@ -1,5 +1,5 @@", " 0", "-1", "+x", " 2", " 3", " 4",
		"@@ -18,7 +18,6 @@", " 17", " 18", " 19", "-20", " 21", " 22", " 23",
		"@@ -38,3 +37,4 @@", " 37", " 38", " 39", "+end",
	}, text)
	assert.Empty(t, hunks(old, old))
	assert.Len(t, hunks(nil, []string{"a"}), 1)
}
