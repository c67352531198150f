import { readFileSync } from 'node:fs'
import type { JsonObject } from '@thv/kernel/json'
import { describe, expect, it } from 'vitest'
import { compileTemplate, evaluate, positionText, render, TemplateError } from './template.ts'
import { expectedOf, type Judged, type JudgeRow, ours } from './testing/judge.ts'
import { DATA, DIFFERENCES, ROWS } from './testing/template-rows.ts'

interface Recording {
  readonly rows: Readonly<Record<string, Judged>>
  readonly differences: Readonly<Record<string, Judged>>
  readonly random: readonly (JudgeRow & Judged)[]
}

const { rows, differences, random } = JSON.parse(
  readFileSync(new URL('../../recordings/go-templates.generated.json', import.meta.url), 'utf8'),
) as Recording

const failure = (source: string, data: JsonObject = DATA): TemplateError => {
  try {
    render(compileTemplate(source), data)
  } catch (error) {
    if (error instanceof TemplateError) return error
    throw error
  }
  throw new Error(`${source} did not fail`)
}

describe('templates judged by Go', () => {
  it.each(Object.entries(ROWS))('%s: every row of the table gives what text/template gives', (_topic, templates) => {
    for (const template of templates) {
      const recorded = rows[template]
      if (!recorded) throw new Error(`${template} is not recorded: npm run soak -- record`)
      expect(ours({ template, data: DATA }), template).toMatchObject(expectedOf(recorded))
    }
  })

  it('the table has at least 300 rows, and all that is recorded is in it', () => {
    const templates = new Set(Object.values(ROWS).flat())
    expect(templates.size).toBeGreaterThanOrEqual(300)
    expect(new Set(Object.keys(rows))).toEqual(templates)
  })

  it.each(DIFFERENCES)('$template differs on purpose: $why', ({ template, ours: wanted }) => {
    const result = ours({ template, data: DATA })
    expect(result).toMatchObject(wanted === undefined ? { ok: false } : { ok: true, text: wanted })
    expect(differences[template]).not.toMatchObject({ ok: result.ok, text: result.text })
  })

  it('random templates give what text/template gives', () => {
    expect(random.length).toBeGreaterThanOrEqual(500)
    for (const { ok, text, ...row } of random) expect(ours(row), row.template).toMatchObject(expectedOf({ ok, text }))
  })
})

describe('typed values', () => {
  it.each([
    ['{{.params.count}}', 3],
    ['{{.params.yes}}', true],
    ['{{.list}}', ['a', 'b', 'c']],
    ['{{.object.c}}', { deep: { deeper: 'bottom' } }],
    ['{{.params.none}}', null],
    ['{{.missing}}', undefined],
    ['{{ .list | len }}', 3],
    ['{{json .numbers}}', '[3,1,2]'],
    ['{{fromJson .json}}', { k: [1, 2, { z: null }] }],
    ['{{and .params.yes .missing}}', undefined],
    [' {{.params.count}}', ' 3'],
    ['{{.params.count}}{{.params.count}}', '33'],
    ['{{- .params.count -}}', 3],
    ['plain', 'plain'],
    ['{{$x := 1}}', ''],
  ])('%s is %j', (source, value) => {
    expect(evaluate(compileTemplate(source), DATA)).toEqual(value)
  })
})

describe('hostile templates', () => {
  const nested = (levels: number) => `${'{{if true}}'.repeat(levels)}x${'{{end}}'.repeat(levels)}`

  it.each([
    ['a source over 64 KiB', 'x'.repeat(64 * 1024 + 1)],
    ['blocks nested too deep', nested(101)],
    ['parentheses nested too deep', `{{${'('.repeat(101)}1${')'.repeat(101)}}}`],
    ['else if nested too deep', `{{if false}}${'{{else if false}}'.repeat(101)}{{end}}`],
    ['a wide printf', '{{printf "%999999999d" 1}}'],
    ['a precise printf', '{{printf "%.999999999f" 1.5}}'],
    ['a width with 30 digits', '{{printf "%099999999999999999999999999999d" 1}}'],
  ])('%s is refused at load', (_title, source) => {
    expect(() => compileTemplate(source)).toThrow(expect.objectContaining({ kind: 'limit' }))
  })

  it.each([
    ['a width out of the data', '{{printf "%*d" .n 1}}'],
    ['an endless range', '{{range .n}}{{end}}'],
    ['ranges in ranges', '{{range 1000}}{{range 1000}}{{end}}{{end}}'],
    ['text that doubles', '{{$x := "abcdefgh"}}{{range 60}}{{$x = print $x $x}}{{end}}{{$x}}'],
    ['output of a gigabyte', '{{range 99}}{{$.text}}{{end}}'],
    ['JSON of a gigabyte', '{{$x := .text}}{{range 99}}{{$x = json $x}}{{end}}'],
    ['quotes of quotes', '{{$x := "\\""}}{{range 40}}{{$x = quote $x}}{{end}}'],
    ['comparisons of long texts', '{{range 90000}}{{if eq $.text $.text}}{{end}}{{end}}'],
    ['lengths of long texts', '{{range 90000}}{{if len $.text}}{{end}}{{end}}'],
    ['a value nested 5,000 levels deep', '{{json .deep}}'],
  ])('%s is ended at run time', (_title, source) => {
    let deep: JsonObject = {}
    for (let level = 0; level < 5_000; level++) deep = { deep }
    expect(failure(source, { n: 999_999_999, text: 'x'.repeat(1024 * 1024), deep }).kind).toBe('limit')
  })

  it('names that are special in JavaScript are ordinary', () => {
    for (const name of ['constructor', '__proto__', 'toString', 'hasOwnProperty']) {
      expect(evaluate(compileTemplate(`{{.${name}}}`), DATA)).toBeUndefined()
      expect(evaluate(compileTemplate(`{{index . "${name}"}}`), DATA)).toBeUndefined()
      expect(() => compileTemplate(`{{${name}}}`)).toThrow(TemplateError)
    }
    expect(evaluate(compileTemplate('{{index . "__proto__"}}'), JSON.parse('{"__proto__": 1}'))).toBe(1)
  })

  it('a source of the largest size without any action is cheap text', () => {
    expect(render(compileTemplate('{'.repeat(1) + 'x'.repeat(64 * 1024 - 1)), {})).toHaveLength(64 * 1024)
  })
})

describe('errors', () => {
  it.each([
    ['a {{.params.name | foo}}', 'there is no function "foo"', 'column 20'],
    ['{{.steps.my-step.output}}', 'unexpected character "-" in a name: write (index .steps "NAME") for a name with a hyphen', 'column 12'],
    ['{{if .x}}', '{{if}} has no {{end}}', 'column 1'],
    ['a\n{{end}}', 'unexpected {{end}}', 'line 2, column 1'],
    ['x {{.missing.path}}', '.missing.path has no value', 'column 3'],
    ['{{len 3}}', 'len needs a string, a list or an object, not a number', 'column 3'],
    ['{{.params.name.x}}', 'there is no member x in a string', 'column 3'],
    ['{{lt 1}}', 'lt takes 2 arguments, not 1', 'column 3'],
    ['{{template "x"}}', 'template is not supported', 'column 3'],
    ['{{call .x}}', 'call is not supported', 'column 3'],
    ['{{printf "%d" "x"}}', 'printf: %d cannot print a string', 'column 3'],
  ])('%j: %s, %s', (source, message, position) => {
    const error = failure(source)
    expect(error.message).toBe(message)
    expect(positionText(source, error.at)).toBe(position)
  })
})
