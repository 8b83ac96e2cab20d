package sentinel

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-go/penstock/internal/shown"
)

const (
	heartPeriod  = 10 * time.Second
	heartTimeout = 3 * time.Second
	maxAnswer    = 4 << 10

	// version is what the dashboard takes the program for. The dashboard chooses how to ask by this
	// number.
	version = "1.8.9-penstock"
)

// heart reports the program to one dashboard.
type heart struct {
	app, ip  string // ip is "" where it isn't known yet
	hostname string
	port     uint16
	to       *url.URL
	client   *http.Client
	log      *slog.Logger
	failing  bool
}

func newHeart(c *checked, to *url.URL, at netip.AddrPort, log *slog.Logger) *heart {
	h := &heart{app: c.App, ip: c.IP, hostname: hostname(), port: at.Port(), to: to, log: log}
	if ip := at.Addr(); h.ip == "" && !ip.IsUnspecified() {
		h.ip = ip.WithZone("").String()
	}
	h.client = &http.Client{
		Timeout:       heartTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return h
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return name
}

// beat reports to the dashboard immediately and every ten seconds, until ctx ends. It logs when
// that begins to fail, and when it succeeds again.
func (h *heart) beat(ctx context.Context) {
	for {
		err := h.tell(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !h.failing:
			h.log.Warn("penstock: a Sentinel dashboard can't be told of this program, trying on", "dashboard", h.to.Redacted(), "error", err)
		case err == nil && h.failing:
			h.log.Info("penstock: a Sentinel dashboard lists this program", "dashboard", h.to.Redacted())
		}
		h.failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-time.After(heartPeriod):
		}
	}
}

func (h *heart) tell(ctx context.Context) error {
	ip := h.ip
	if ip == "" {
		var err error
		if ip, err = localTo(ctx, h.to); err != nil {
			return err
		}
	}
	form := url.Values{
		"app":      {h.app},
		"app_type": {"0"},
		"v":        {version},
		"version":  {strconv.FormatInt(time.Now().UnixMilli(), 10)},
		"hostname": {h.hostname},
		"ip":       {ip},
		"port":     {strconv.Itoa(int(h.port))},
		"pid":      {strconv.Itoa(os.Getpid())},
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, h.to.String(), strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := h.client.Do(request)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err // without the address, which may hold a password
		}
		return errors.New(shown.Name(err.Error(), maxSaid)) // it may quote what was answered
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return err
	}
	var answer struct {
		Success *bool
		Msg     string
	}
	switch err := json.Unmarshal(body, &answer); {
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("it answers %d %s", response.StatusCode, http.StatusText(response.StatusCode)) // not in its words
	case err != nil:
		return errors.New("it answers what is no dashboard's answer")
	case answer.Success != nil && !*answer.Success:
		return fmt.Errorf("it refuses: %.200q", answer.Msg)
	}
	return nil
}

// localTo is the address of this machine that others see when it asks there. Nothing is sent.
func localTo(ctx context.Context, to *url.URL) (string, error) {
	port := cmp.Or(to.Port(), "80") // any will do
	conn, err := new(net.Dialer).DialContext(ctx, "udp", net.JoinHostPort(to.Hostname(), port))
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	return conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap().WithZone("").String(), nil
}
