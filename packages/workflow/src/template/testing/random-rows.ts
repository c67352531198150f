import type { JsonObject } from '@thv/kernel/json'
import fc from 'fast-check'
import type { JudgeRow } from './judge.ts'

/*
 * Random templates about random data. Numbers are whole, since Go prints others differently, and lists and objects are never printed.
 */

const key = fc.constantFrom('a', 'b', 'c')
const text = fc.oneof(fc.constantFrom('', 'a', '<x> & "y"', 'é', '🙂', ' 1 '), fc.string({ maxLength: 6, unit: 'grapheme' }))
const scalar = fc.oneof(text, fc.integer({ min: -20, max: 1_000 }), fc.boolean())
const data = fc.dictionary(
  key,
  fc.oneof(scalar, fc.array(scalar, { maxLength: 3 }), fc.dictionary(key, scalar, { maxKeys: 2, noNullPrototype: true })),
  {
    maxKeys: 3,
    noNullPrototype: true,
  },
) as fc.Arbitrary<JsonObject>

const literal = fc.oneof(
  fc.integer({ min: -9, max: 99 }).map(String),
  text.map((value) => JSON.stringify(value.toWellFormed())),
  fc.constantFrom('true', 'false'),
)
const path = fc.oneof(
  key.map((name) => `.${name}`),
  fc.tuple(key, key).map(([first, second]) => `.${first}.${second}`),
  fc.constantFrom('.', '$', '$x', '$.a', '$x.b'),
)

const { operand, block } = fc.letrec<{ operand: string; call: string; block: string }>((tie) => ({
  operand: fc.oneof(
    { depthSize: 'small', maxDepth: 4 },
    literal,
    path,
    tie('call').map((call) => `(${call})`),
  ),
  call: fc.oneof(
    fc
      .tuple(fc.constantFrom('not', 'len', 'json', 'quote', 'html', 'js', 'urlquery', 'print'), tie('operand'))
      .map(([name, a]) => `${name} ${a}`),
    fc
      .tuple(fc.constantFrom('and', 'or', 'eq', 'ne', 'lt', 'le', 'gt', 'ge', 'index', 'slice'), tie('operand'), tie('operand'))
      .map(([name, a, b]) => `${name} ${a} ${b}`),
    fc
      .tuple(fc.constantFrom('%s', '%v', '%q', '%d', '%5d', '%-4s|', '%x', '%t', '%%%v'), tie('operand'))
      .map(([f, a]) => `printf "${f}" ${a}`),
    fc.tuple(tie('operand'), fc.constantFrom('len', 'not', 'print "p"', 'json', 'quote', 'eq 1')).map(([a, name]) => `${a} | ${name}`),
  ),
  block: fc.oneof(
    { depthSize: 'small', maxDepth: 4 },
    fc.constantFrom('x', ' ', 'é\n'),
    tie('call').map((call) => `{{${call}}}`),
    tie('call').map((call) => `{{- ${call} -}}`),
    tie('operand').map((value) => `{{print (len (print ${value}))}}`),
    tie('operand').map((value) => `{{$x = ${value}}}`),
    fc.tuple(tie('operand'), tie('block'), tie('block')).map(([value, a, b]) => `{{if ${value}}}${a}{{else}}${b}{{end}}`),
    fc.tuple(tie('operand'), tie('block'), tie('block')).map(([value, a, b]) => `{{with ${value}}}${a}{{else}}${b}{{end}}`),
    fc.tuple(tie('operand'), tie('block')).map(([value, a]) => `{{range ${value}}}${a}{{else}}none{{end}}`),
    fc.tuple(tie('operand'), tie('block')).map(([value, a]) => `{{range $i, $e := ${value}}}{{if eq $i 1}}{{break}}{{end}}${a}{{end}}`),
    fc.tuple(tie('block'), tie('block')).map(([a, b]) => a + b),
  ),
}))

/** A list or object that becomes text prints as JSON here and in Go's own way there: then the two are not compared. */
export const COMPOUND_IN_TEXT = /map\[|\[[^\]]*\]|compound in text/

export function randomRows(count: number, seed: number): JudgeRow[] {
  const template = fc
    .array(
      fc.oneof(
        block,
        operand.map((value) => `{{json ${value}}}`),
      ),
      { minLength: 1, maxLength: 4 },
    )
    .map((parts) => `{{$x := .b}}${parts.join('')}`)
  return fc.sample(fc.record({ template, data }), { numRuns: count, seed }).map((row) => ({ ...row, strict: true }))
}
