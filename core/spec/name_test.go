package spec_test

import (
	"strings"
	"testing"

	"github.com/penstock-go/penstock/core/pattern"
	"github.com/penstock-go/penstock/core/spec"
	"github.com/stretchr/testify/assert"
)

func TestCheckName(t *testing.T) {
	longest := strings.Repeat("x", pattern.MaxName)
	tooLong := longest + "x"
	assert.EqualError(t, spec.CheckName("ref", tooLong), "ref: has 1025 bytes, and a name has at most 1024: no call can have it")
	assert.NoError(t, spec.CheckName("ref", longest))
}
