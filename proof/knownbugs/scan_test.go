package main

import (
	"fmt"
	"os"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestScan(t *testing.T) {
	// The word is put in here, so that this file itself names nothing.
	file := func(src string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte(os.Expand(src, func(string) string { return "known bug" }))}
	}
	fsys := fstest.MapFS{
		"a/a_test.go": file(`//go:build sim

package a

// Above, and over
// two lines: ${m} 1, 2-4,
// 6 and 7 and what follows.
func TestAbove(t *testing.T) {}

func TestInside(t *testing.T) { // ${m} 1
	// ${m} 8: said
	_ = "// ${m} 9"
	/* ${m} 8 */
}

func FuzzIt(f *testing.F) {} // ${m} 10

// ${m} 11
func ExampleIt() {}

// no number: the ${m} is here
func TestNothing(t *testing.T) {}
`),
		"nested/go.mod": file("module nested"),
		"nested/b/b_test.go": file(`package b
func Test_Under(t *testing.T) {
	// ${m} 5
}`),
		"nested/b/stray_test.go": file(`package b

// ${m} 12

func TestApart(t *testing.T) {}

// ${m} 13
func help() {}

// ${m} 14
func (s suite) TestMethod() {}

// ${m} 15
func BenchmarkIt(b *testing.B) {}

// ${m} 16
func Testify() {}

// ${m} 17
func TestMain(m *testing.M) {}

// ${m} 0, 1
func TestNought(t *testing.T) {}

// ${m} 1009
func TestBeyond(t *testing.T) {}

// ${m} 7-5
func TestBackwards(t *testing.T) {}
`),
		"a/a.go":               file("package a\n\n// ${m} 20\nfunc f() {}"),
		"a/testdata/c_test.go": file("package c\n\n// ${m} 21\nfunc TestC() {}"),
		".hidden/d_test.go":    file("package d\n\n// ${m} 22\nfunc TestD() {}"),
	}
	got, err := scan(fsys)
	require.NoError(t, err)
	above := owner{"a/a_test.go", 8, "TestAbove"}
	inside := owner{"a/a_test.go", 10, "TestInside"}
	assert.Equal(t, map[int][]owner{
		1: {above, inside}, 2: {above}, 3: {above}, 4: {above}, 6: {above}, 7: {above},
		5:  {{"nested/b/b_test.go", 2, "Test_Under"}},
		8:  {inside},
		11: {{"a/a_test.go", 19, "ExampleIt"}},
	}, got.owners)
	rowsAre := fmt.Sprintf(": rows are 1 to %d", len(allRows()))
	const outside = ": a row is named outside a test: put the comment inside the test that owns it, or right above"
	assert.Equal(t, []string{
		"a/a_test.go:16" + outside,
		"nested/b/stray_test.go:3" + outside,
		"nested/b/stray_test.go:7" + outside,
		"nested/b/stray_test.go:10" + outside,
		"nested/b/stray_test.go:13" + outside,
		"nested/b/stray_test.go:16" + outside,
		"nested/b/stray_test.go:19" + outside,
		"nested/b/stray_test.go:22: there is no row 0" + rowsAre,
		"nested/b/stray_test.go:25: there is no row 1009" + rowsAre,
		"nested/b/stray_test.go:28: there is no row 7-5" + rowsAre,
	}, got.problems)

	_, err = scan(fstest.MapFS{"a_test.go": file("package")})
	assert.Error(t, err)
}
