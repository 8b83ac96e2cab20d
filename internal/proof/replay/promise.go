package replay

import (
	"github.com/penstock-go/penstock/internal/proof/model"
)

// promised returns our promise for a call, which is the model's verdict in the traces' words.
func (p *player) promised(c *model.Call) verdict {
	p.model.Enter(c)
	switch c.State {
	case model.Blocked:
		return verdict{result: "block", blockedBy: javaKind(c.By.Kind.String()), rule: c.By.ID}
	case model.Waiting:
		return verdict{result: "wait", wait: c.Wait}
	}
	return verdict{result: "pass"}
}

// checkPromise compares our verdict with the promise.
func (j *judge) checkPromise(m *moment) {
	if m.got != m.promise {
		j.fail("we promise %v, got %v", m.promise, m.got)
	}
	j.outcome.Kept++
	if m.got == m.want.verdict() {
		j.outcome.Alike++
	}
	if !m.call.blocked && m.call.prioritized {
		j.retime(m.call.asked)
	}
}
