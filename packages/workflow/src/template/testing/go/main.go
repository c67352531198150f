// Renders templates with Go's text/template. Reads a JSON list of {template, data} and writes one of {ok, text}.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/template"
)

type row struct {
	Template string          `json:"template"`
	Data     json.RawMessage `json:"data"`
	// Nothing and misprints are errors, also where their text is not part of the output.
	Strict bool `json:"strict"`
}

type result struct {
	OK   bool   `json:"ok"`
	Text string `json:"text"`
}

var functions = template.FuncMap{
	"json": func(value any) (string, error) {
		var out strings.Builder
		encoder := json.NewEncoder(&out)
		encoder.SetEscapeHTML(false)
		err := encoder.Encode(value)
		return strings.TrimSuffix(out.String(), "\n"), err
	},
	"quote":    func(text string) string { return strconv.Quote(text) },
	"fromJson": func(text string) (any, error) { return decode([]byte(text)) },
}

var strict = template.FuncMap{
	"print":   func(values ...any) (string, error) { return checked(fmt.Sprint(values...), values) },
	"println": func(values ...any) (string, error) { return checked(fmt.Sprintln(values...), values) },
	"printf": func(format string, values ...any) (string, error) {
		return checked(fmt.Sprintf(format, values...), values)
	},
	"html": func(values ...any) (string, error) {
		return checked(template.HTMLEscaper(slices.Clone(values)...), values)
	},
	"js": func(values ...any) (string, error) {
		return checked(template.JSEscaper(slices.Clone(values)...), values)
	},
	"urlquery": func(values ...any) (string, error) {
		return checked(template.URLQueryEscaper(slices.Clone(values)...), values)
	},
}

func checked(text string, values []any) (string, error) {
	for _, value := range values {
		switch value.(type) {
		case nil:
			return "", errors.New("nothing in text")
		case []any, map[string]any:
			return "", errors.New("compound in text")
		}
	}
	if strings.Contains(text, "%!") {
		return "", errors.New("misprint")
	}
	return text, nil
}

// Whole numbers become ints: as float64, Go would print 1000000 as 1e+06 and could not compare it with 10.
func decode(text []byte) (any, error) {
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	if decoder.More() {
		return nil, os.ErrInvalid
	}
	return plain(value), nil
}

func plain(value any) any {
	switch value := value.(type) {
	case json.Number:
		if whole, err := strconv.ParseInt(value.String(), 10, 64); err == nil {
			return int(whole)
		}
		float, _ := value.Float64()
		return float
	case []any:
		list := make([]any, len(value))
		for i, item := range value {
			list[i] = plain(item)
		}
		return list
	case map[string]any:
		for key, item := range value {
			value[key] = plain(item)
		}
	}
	return value
}

func render(row row) result {
	data, err := decode(row.Data)
	if err != nil {
		panic(err)
	}
	compiler := template.New("t").Funcs(functions)
	if row.Strict {
		compiler = compiler.Funcs(strict)
	}
	parsed, err := compiler.Parse(row.Template)
	if err != nil {
		return result{Text: err.Error()}
	}
	var out strings.Builder
	if err := parsed.Execute(&out, data); err != nil {
		return result{Text: err.Error()}
	}
	return result{OK: true, Text: out.String()}
}

func main() {
	var rows []row
	if err := json.NewDecoder(os.Stdin).Decode(&rows); err != nil {
		panic(err)
	}
	results := make([]result, len(rows))
	for i, row := range rows {
		results[i] = render(row)
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(results); err != nil {
		panic(err)
	}
}
