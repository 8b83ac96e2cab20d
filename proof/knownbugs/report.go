package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const width = 80

// without are the rows that could have a test and have none.
func without(tests found) (rows []row) {
	for _, r := range allRows() {
		if r.waits == "" && len(tests.owners[r.number]) == 0 {
			rows = append(rows, r)
		}
	}
	return rows
}

// waiting are the rows that have no test because what they need isn't built, by
// what that is.
func waiting(tests found) (parts []string, rows map[string][]int) {
	rows = make(map[string][]int)
	for _, r := range allRows() {
		if r.waits == "" || len(tests.owners[r.number]) > 0 {
			continue
		}
		if rows[r.waits] == nil {
			parts = append(parts, r.waits)
		}
		rows[r.waits] = append(rows[r.waits], r.number)
	}
	return parts, rows
}

// summary is what the command prints last: what is missing, what waits, how many.
func summary(tests found, patches []mutant) string {
	var b strings.Builder
	for _, p := range tests.problems {
		fmt.Fprintln(&b, p)
	}
	missing := without(tests)
	if len(missing) > 0 {
		fmt.Fprintln(&b, "Rows without a test:")
		for _, r := range missing {
			fmt.Fprintf(&b, "%5d  %s\n", r.number, r.wrong)
		}
	}
	parts, rows := waiting(tests)
	wait := 0
	if len(parts) > 0 {
		fmt.Fprintln(&b, "Rows that wait for a part that isn't built:")
	}
	for _, part := range parts {
		wait += len(rows[part])
		fmt.Fprintf(&b, "  %-16s %s\n", part, ranges(rows[part]))
	}
	all := len(allRows())
	fmt.Fprintf(&b, "%d rows: %d with a test, %d without, %d waiting. %d patches, of %d rows.\n",
		all, all-len(missing)-wait, len(missing), wait, len(patches), len(patchesByRow(patches)))
	return b.String()
}

// everything lists each row with its tests and patches.
func everything(tests found, patches []mutant) string {
	var b strings.Builder
	byRow := patchesByRow(patches)
	for _, s := range sections {
		fmt.Fprintf(&b, "%s\n%s\n", s.title, strings.Repeat("=", len(s.title)))
		for _, r := range s.rows {
			fmt.Fprintf(&b, "%4d  %s\n", r.number, r.wrong)
			if r.waits != "" {
				fmt.Fprintf(&b, "      waits for: %s\n", r.waits)
			} else if len(tests.owners[r.number]) == 0 {
				fmt.Fprintf(&b, "      NO TEST\n")
			}
			for _, o := range tests.owners[r.number] {
				at := fmt.Sprintf("%s:%d", o.file, o.line)
				if len(at)+len(o.test)+7 > width {
					at += "\n       "
				}
				fmt.Fprintf(&b, "      %s %s\n", at, o.test)
			}
			for _, m := range byRow[r.number] {
				fmt.Fprintf(&b, "      patch %s\n", m.name)
			}
		}
		fmt.Fprintln(&b)
	}
	return b.String()
}

// testsByPackage is "`flow` TestA, TestB; `stat` TestC".
func testsByPackage(owners []owner) string {
	byDir := make(map[string][]string)
	for _, o := range owners {
		if !slices.Contains(byDir[o.dir()], o.test) {
			byDir[o.dir()] = append(byDir[o.dir()], o.test)
		}
	}
	var parts []string
	for dir, tests := range byDir {
		slices.Sort(tests) // by name: a test that moves within its package changes nothing here
		parts = append(parts, "`"+dir+"` "+strings.Join(tests, ", "))
	}
	slices.Sort(parts)
	return strings.Join(parts, "; ")
}

func patchesByRow(patches []mutant) map[int][]mutant {
	byRow := make(map[int][]mutant)
	for _, m := range patches {
		for _, n := range m.rows {
			byRow[n] = append(byRow[n], m)
		}
	}
	return byRow
}

// ranges is "1, 3-5": two in a row stay apart.
func ranges(numbers []int) string {
	numbers = slices.Sorted(slices.Values(numbers))
	var parts []string
	for i := 0; i < len(numbers); {
		j := i
		for j+1 < len(numbers) && numbers[j+1] == numbers[j]+1 {
			j++
		}
		if j-i < 2 {
			j = i
		}
		part := strconv.Itoa(numbers[i])
		if j > i {
			part += "-" + strconv.Itoa(numbers[j])
		}
		parts = append(parts, part)
		i = j + 1
	}
	return cmp.Or(strings.Join(parts, ", "), "none")
}
