package rules

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

type panicReader struct{ io.Reader }

func (panicReader) Read([]byte) (int, error) { panic("out of cheese") }

// A parser that panics must not crash the program.
func TestParserPanicIsAnError(t *testing.T) {
	_, err := documents(panicReader{})
	require.EqualError(t, err, "yaml: the parser failed: out of cheese")
}
