package api_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/api"
)

// In a synctest bubble, a rule file is loaded, and loaded again after a change, and calls wait in
// the bubble's time: the alternative that the documentation of WatchRules recommends there.
func TestRuleFileInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(t, api.Config{})
		path := filepath.Join(t.TempDir(), "rules.yaml")
		for _, distance := range []time.Duration{time.Second, 250 * time.Millisecond} {
			file := "flow: [{id: mail, resource: mail, threshold: 1, interval: " + distance.String() + ", behavior: throttle, maxWait: 1h}]"
			require.NoError(t, os.WriteFile(path, []byte(file), 0o600))
			require.NoError(t, g.LoadRulesFile(path))
			time.Sleep(time.Minute)
			begin := time.Now()
			for range 3 {
				e, err := g.Entry(t.Context(), "mail")
				require.NoError(t, err)
				e.Exit()
			}
			assert.Equal(t, 2*distance, time.Since(begin))
		}
	})
}
