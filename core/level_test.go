package core_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
)

func TestLevelNames(t *testing.T) {
	for l, name := range map[core.Level]string{core.CriticalPlus: "criticalPlus", core.Critical: "critical", core.SheddablePlus: "sheddablePlus", core.Sheddable: "sheddable"} {
		assert.True(t, l.Valid())
		text, err := json.Marshal(l)
		require.NoError(t, err)
		assert.Equal(t, `"`+name+`"`, string(text))
		back := core.Level(7)
		require.NoError(t, json.Unmarshal(text, &back))
		assert.Equal(t, l, back)
	}
	for _, l := range []core.Level{core.CriticalPlus - 1, core.Sheddable + 1, 127, -128} {
		assert.False(t, l.Valid())
		_, err := l.MarshalText()
		assert.Error(t, err)
		assert.Contains(t, l.String(), "criticality(")
	}
	l := core.Sheddable
	assert.Error(t, l.UnmarshalText([]byte("urgent")))
	assert.Equal(t, core.Critical, l)
}
