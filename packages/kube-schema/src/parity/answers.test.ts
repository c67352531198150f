import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { REJECTIONS } from '../../../../test/fixtures/resources/rejections.ts'
import type { FieldProblem, JsonObject, KindSchema } from '../kind-schema.ts'
import { type CrdVersions, crdSchemaProblems, crdSchemas } from '../structural/crd-schemas.ts'
import { structuralSchema } from '../structural/structural-schema.ts'
import { ODD_ROOT, ODD_SCHEMAS, ODD_SPECS, ODD_UPDATES, oddCrd } from './odd-crds.ts'

/* Our answers beside those of the real server, cause by cause; recorded by answers.cluster.test.ts. */

interface Cause {
  readonly reason: string
  readonly field: string
  readonly message: string
}

interface Answer {
  readonly status: number
  readonly causes?: readonly Cause[]
  readonly spec?: JsonObject
  readonly message?: string
}

type Answers = Readonly<Record<string, Answer>>

const golden = (name: string) =>
  JSON.parse(readFileSync(new URL(`../../recordings/parity/${name}.golden.json`, import.meta.url), 'utf8')) as Answers

describe('odd CRDs', () => {
  const answers = golden('crds')
  it.each(Object.entries(ODD_SCHEMAS))('%s', (name, root) => {
    const problems = crdSchemaProblems(oddCrd('refuseds', root) as unknown as CrdVersions)
    expect(causesOf(problems).map(comparable)).toEqual((answers[name]?.causes ?? []).map(comparable).toSorted(byText))
  })

  /** Compares that the compiler rejects and where, not its words. */
  function comparable({ reason, field, message }: Cause): Cause {
    const text = message.replace(/compilation failed: .*/s, 'compilation failed').replace(/but isn't: error parsing regexp.*/s, "but isn't")
    return { reason, field, message: text }
  }
})

describe('odd objects', () => {
  const answers = golden('objects')
  const schema = structuralSchema(ODD_ROOT)

  it.each(ODD_SPECS.map((spec) => [JSON.stringify(spec), spec] as const))('%s', (title, spec) => {
    expect(answerTo(schema, object(spec))).toEqual(expected(answers[title]))
  })

  it.each(ODD_UPDATES.map((pair) => [JSON.stringify(pair), pair] as const))('update %s', (title, [old, next]) => {
    expect(answerTo(schema, object(next), schema.applyDefaults(object(old)))).toEqual(expected(answers[title]))
  })

  function object(spec: JsonObject): JsonObject {
    return { apiVersion: 'odd.example.com/v1', kind: 'Odds', metadata: { name: 'odd' }, spec }
  }
})

describe('bad manifests of our own kinds', () => {
  const answers = golden('manifests')
  const folder = new URL('../../../../deploy/crds/', import.meta.url)
  const crds = readdirSync(folder).map(
    (file) => parse(readFileSync(new URL(file, folder), 'utf8')) as CrdVersions & { spec: { names: { kind: string } } },
  )

  it.each(crds.map((crd) => [crd.spec.names.kind, crd] as const))('%s', (kind, crd) => {
    const schema = crdSchemas(crd).get('v1beta1')
    if (!schema) throw new Error('v1beta1 is not there')
    for (const { title, name, spec } of REJECTIONS[kind] ?? []) {
      const manifest = JSON.parse(JSON.stringify({ apiVersion: 'x', kind, metadata: { name: name ?? 'bad' }, spec })) as JsonObject
      const answer = answers[`${kind}: ${title}`]
      const unknown = schema.prune(manifest).unknown
      if (answer?.status === 400)
        expect(unknown.map((path) => `unknown field "${path}"`).join(', ')).toBe(answer.message?.replace(/^.*strict decoding error: /, ''))
      else expect(answerTo(schema, manifest), title).toEqual(expected(answer))
    }
  })
})

function answerTo(schema: KindSchema, manifest: JsonObject, old?: JsonObject): Pick<Answer, 'causes' | 'spec'> {
  const stored = schema.applyDefaults(schema.prune(manifest).object)
  const problems = schema.validate(stored, old)
  return problems.length > 0 ? { causes: causesOf(problems) } : { spec: stored['spec'] as JsonObject }
}

function expected(answer: Answer | undefined): Pick<Answer, 'causes' | 'spec'> {
  if (!answer) throw new Error('no answer recorded')
  return answer.causes ? { causes: answer.causes.toSorted(byText) } : { spec: answer.spec ?? {} }
}

function causesOf(problems: readonly FieldProblem[]): readonly Cause[] {
  return problems.map(({ reason, field, message }) => ({ reason, field, message })).toSorted(byText)
}

function byText(a: Cause, b: Cause): number {
  const [left, right] = [a, b].map(({ reason, field, message }) => JSON.stringify([reason, field, message]))
  return (left ?? '') < (right ?? '') ? -1 : 1
}
