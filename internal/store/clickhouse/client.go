// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package clickhouse

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// Config is where the table is.
type Config struct {
	// Client sends requests to Endpoint, an URL.
	Client   *http.Client
	Endpoint string
	// Database and Table are identifiers (IsIdentifier).
	Database, Table    string
	Username, Password string
	// MaxResultRows and MaxResultBytes bound the answer to each statement. The engine refuses a larger one, and what it
	// sends beyond is not read.
	MaxResultRows, MaxResultBytes int
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// IsIdentifier reports whether a name can be that of a database or a table.
func IsIdentifier(name string) bool { return len(name) <= 128 && identifier.MatchString(name) }

// Engine is a table of ClickHouse. It is safe for concurrent use.
type Engine struct {
	cfg Config
	// columns are those of the table, once they are known.
	columns atomic.Pointer[columns]
}

// New returns the engine of a table.
func New(cfg Config) (*Engine, error) {
	if !IsIdentifier(cfg.Database) || !IsIdentifier(cfg.Table) {
		return nil, fmt.Errorf("database %q and table %q must be identifiers", cfg.Database, cfg.Table)
	}
	return &Engine{cfg: cfg}, nil
}

// statement is SQL with its parameters, and at most one table that comes with it.
type statement struct {
	columns
	// from names the table of profiles.
	from string
	sql  strings.Builder
	// names has the parameters by their SQL: equal ones are one.
	names map[string]string
	err   error
	// tableName, structure and rows are the table.
	tableName, structure string
	rows                 []byte
}

func (s *statement) add(parts ...string) *statement {
	for _, part := range parts {
		s.sql.WriteString(part)
	}
	return s
}

// escaped are the characters that the value of a parameter, and a text in a list, cannot have.
var (
	escaped = strings.NewReplacer("\\", `\\`, "\t", `\t`, "\n", `\n`, "\r", `\r`, "\x00", `\0`, "\b", `\b`, "\f", `\f`)
	quoted  = strings.NewReplacer("\\", `\\`, "'", `\'`, "\t", `\t`, "\n", `\n`, "\r", `\r`, "\x00", `\0`, "\b", `\b`,
		"\f", `\f`)
)

// string adds a parameter, and returns the SQL of it.
func (s *statement) string(value string) string { return s.parameter(escaped.Replace(value), "String") }

func (s *statement) int(value int64) string {
	return s.parameter(strconv.FormatInt(value, 10), "Int64")
}

func (s *statement) strings(list []string) string {
	var b strings.Builder
	for i, value := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("'" + quoted.Replace(value) + "'")
	}
	return s.parameter("["+b.String()+"]", "Array(String)")
}

func (s *statement) parameter(value, typ string) string {
	if len(value) > maxParameterBytes {
		s.err = fmt.Errorf("%w for ClickHouse: a name of %d bytes, of at most %d", model.ErrTooLarge, len(value),
			maxParameterBytes)
		return "''"
	}
	key := typ + "=" + value
	name, ok := s.names[key]
	if !ok {
		name = "p" + strconv.Itoa(len(s.names))
		s.names[key] = name
	}
	return "{" + name + ":" + typ + "}"
}

// ClickHouse takes parameters of 128 KiB, and addresses of 1 MiB, if it has its defaults.
const (
	maxParameterBytes = 100_000
	maxAddressBytes   = 1_000_000
)

// body returns the body of the request, which brings the table, and its type.
func (s *statement) body() (body []byte, contentType string, err error) {
	if s.tableName == "" {
		return nil, "text/plain", nil
	}
	b := bytes.NewBuffer(make([]byte, 0, len(s.rows)+1024))
	w := multipart.NewWriter(b)
	part, err := w.CreateFormFile(s.tableName, s.tableName)
	if err == nil {
		_, err = part.Write(s.rows)
	}
	err = cmp.Or(err, w.Close())
	return b.Bytes(), w.FormDataContentType(), err
}

// maxErrorBytes is how much of an error is read, maxErrorText how much of it is told.
const (
	maxErrorBytes = 4 << 10
	maxErrorText  = 400
)

// settings returns a statement, its parameters, and the bounds of its answer.
func (e *Engine) settings(ctx context.Context, s *statement) url.Values {
	settings := url.Values{
		"query": {s.sql.String()}, "database": {e.cfg.Database}, "default_format": {"RowBinary"},
		// The answer begins when all of it is there: an error comes in its place, not within.
		"wait_end_of_query": {"1"}, "result_overflow_mode": {"throw"},
		// With it, sums would no longer have the text of those in projections, and be computed of all rows.
		"optimize_functions_to_subcolumns": {"0"},
		"max_result_rows":                  {strconv.Itoa(e.cfg.MaxResultRows)},
		"max_result_bytes":                 {strconv.Itoa(e.cfg.MaxResultBytes)},
	}
	if deadline, ok := ctx.Deadline(); ok {
		settings.Set("max_execution_time", strconv.Itoa(max(1, int(math.Ceil(time.Until(deadline).Seconds())))))
	}
	for key, name := range s.names {
		_, value, _ := strings.Cut(key, "=")
		settings.Set("param_"+name, value)
	}
	if s.tableName != "" {
		settings.Set(s.tableName+"_structure", s.structure)
		settings.Set(s.tableName+"_format", "RowBinary")
	}
	return settings
}

func (e *Engine) request(ctx context.Context, s *statement) (*http.Request, error) {
	body, contentType, err := s.body()
	if err := cmp.Or(s.err, err); err != nil {
		return nil, err
	}
	endpoint, err := url.Parse(e.cfg.Endpoint)
	if err != nil {
		return nil, err
	}
	if endpoint.RawQuery = e.settings(ctx, s).Encode(); len(endpoint.RawQuery) > maxAddressBytes {
		return nil, fmt.Errorf("%w for ClickHouse: the query has %d bytes of names, of at most %d", model.ErrTooLarge,
			len(endpoint.RawQuery), maxAddressBytes)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", contentType)
	if e.cfg.Username != "" {
		req.Header.Set("X-ClickHouse-User", e.cfg.Username)
		req.Header.Set("X-ClickHouse-Key", e.cfg.Password)
	}
	return req, nil
}

// run sends a statement, and calls read and use for each row of the answer.
func (e *Engine) run(ctx context.Context, s *statement, read func(*reader), use func() error) error {
	req, err := e.request(ctx, s)
	if err != nil {
		return err
	}
	resp, err := e.cfg.Client.Do(req)
	if err != nil {
		return failure(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	isPage := strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") // such as a login, of a proxy
	if resp.StatusCode != http.StatusOK || isPage {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBytes))
		return refusal(resp.StatusCode, string(text))
	}
	in := newReader(resp.Body, e.cfg.MaxResultBytes)
	for !in.atEnd() {
		read(in)
		if errors.Is(in.err, model.ErrTooLarge) {
			return in.err
		}
		if in.err != nil {
			return failure(ctx, in.err)
		}
		if err := use(); err != nil {
			return err
		}
	}
	return nil
}

// failure returns the error of a request that had no answer. Its own says where the engine is, which a reader need not
// know.
func failure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if unsent, ok := errors.AsType[*url.Error](err); ok {
		err = unsent.Err
	}
	return fmt.Errorf("%w does not answer: %w", answers.ErrEngine, err)
}

// Codes of ClickHouse's errors.
const (
	codeTooManyRows    = 158
	codeTimeout        = 159
	codeTooManyBytes   = 307
	codeMemoryLimit    = 241
	codeResultTooLarge = 396
	codeTooSlow        = 160
	codeCancelled      = 394
)

var exceptionCode = regexp.MustCompile(`Code: (\d+)`)

// refusal returns the error of an answer without rows.
func refusal(status int, text string) error {
	code := 0
	if m := exceptionCode.FindStringSubmatch(text); m != nil {
		code, _ = strconv.Atoi(m[1])
	}
	text = dictionary.Shorten(strings.TrimSpace(text), maxErrorText)
	switch code {
	case codeTimeout, codeTooSlow, codeCancelled:
		return fmt.Errorf("ClickHouse: %s: %w", text, context.DeadlineExceeded)
	case codeTooManyRows, codeTooManyBytes, codeMemoryLimit, codeResultTooLarge:
		return fmt.Errorf("%w for ClickHouse: %s", model.ErrTooLarge, text)
	default:
		return fmt.Errorf("%w refuses the query with status %d: %s", answers.ErrEngine, status, text)
	}
}
