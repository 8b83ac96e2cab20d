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

	// version is the version reported to the dashboard, which chooses its requests by this number.
	version = "1.8.9-penstock"
)

// heart reports the program to one dashboard.
type heart struct {
	app, ip  string // ip is "" until it is known
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

// beat reports to the dashboard immediately and every ten seconds, until ctx ends. It logs the first
// failure and the next success.
func (h *heart) beat(ctx context.Context) {
	for {
		err := h.report(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !h.failing:
			h.log.Warn("penstock: can't report to Sentinel dashboard, retrying every 10 s", "dashboard", h.to.Redacted(), "error", err)
		case err == nil && h.failing:
			h.log.Info("penstock: Sentinel dashboard lists this program", "dashboard", h.to.Redacted())
		}
		h.failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-time.After(heartPeriod):
		}
	}
}

func (h *heart) report(ctx context.Context) error {
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
			err = failed.Err // without the address, which may contain a password
		}
		return errors.New(shown.Name(err.Error(), maxLogged)) // it may quote the response
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
		return fmt.Errorf("the response is %d %s", response.StatusCode, http.StatusText(response.StatusCode)) // without its body
	case err != nil:
		return errors.New("the response is not a dashboard's")
	case answer.Success != nil && !*answer.Success:
		return fmt.Errorf("it refused: %.200q", answer.Msg)
	}
	return nil
}

// localTo returns the address from which this machine reaches the dashboard. It sends nothing.
func localTo(ctx context.Context, to *url.URL) (string, error) {
	port := cmp.Or(to.Port(), "80") // any port will do
	conn, err := new(net.Dialer).DialContext(ctx, "udp", net.JoinHostPort(to.Hostname(), port))
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	return conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap().WithZone("").String(), nil
}
