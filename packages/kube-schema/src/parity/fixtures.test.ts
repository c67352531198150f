import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { REJECTIONS } from '../../../../test/fixtures/resources/rejections.ts'
import type { FieldProblem, JsonObject, KindSchema } from '../kind-schema.ts'
import type { SchemaNode } from '../schema-node.ts'
import { structuralSchema } from '../structural/structural-schema.ts'

/*
 * The corpus of packages/resources, whose expectations were made on the real server: the same manifests, the same
 * answers, without any server. `answers.test.ts` compares the answers word by word.
 */

const ROOT = new URL('../../../../', import.meta.url)

interface Crd {
  readonly spec: {
    readonly names: { kind: string; plural: string }
    readonly versions: readonly { name: string; schema: { openAPIV3Schema: SchemaNode } }[]
  }
}

const CRDS = readdirSync(new URL('deploy/crds/', ROOT)).map(
  (file) => parse(readFileSync(new URL(`deploy/crds/${file}`, ROOT), 'utf8')) as Crd,
)

function schemaOf(crd: Crd): KindSchema {
  const version = crd.spec.versions.find(({ name }) => name === 'v1beta1')
  if (!version) throw new Error(`no v1beta1 in ${crd.spec.names.kind}`)
  return structuralSchema(version.schema.openAPIV3Schema)
}

/** Warning for a strict client; the text has the shape of the real answer. */
function refusal(schema: KindSchema, manifest: JsonObject): string {
  const { object, unknown } = schema.prune(manifest)
  if (unknown.length > 0) return unknown.map((path) => `unknown field "${path}"`).join(', ')
  return schema
    .validate(schema.applyDefaults(object))
    .map(({ detail }: FieldProblem) => detail)
    .join(', ')
}

function fixturesOf(plural: string): JsonObject[] {
  const folder = new URL(`test/fixtures/resources/${plural}/`, ROOT)
  return readdirSync(folder).flatMap((file) =>
    parseAllDocuments(readFileSync(new URL(file, folder), 'utf8')).map((document) => document.toJSON() as JsonObject),
  )
}

describe.each(CRDS.map((crd) => [crd.spec.names.kind, crd] as const))('%s', (kind, crd) => {
  const schema = schemaOf(crd)
  const fixtures = fixturesOf(crd.spec.names.plural).filter((manifest) => manifest['kind'] === kind)

  it('takes every valid manifest', () => {
    expect(fixtures.length).toBeGreaterThan(0)
    for (const manifest of fixtures) expect(refusal(schema, manifest)).toBe('')
  })

  const rows = REJECTIONS[kind] ?? []
  it.each(rows.map((row) => [row.title, row] as const))('refuses: %s', (_title, row) => {
    const manifest = JSON.parse(
      JSON.stringify({
        apiVersion: 'toolhive.stacklok.dev/v1beta1',
        kind,
        metadata: { name: row.name ?? 'bad', namespace: 'test' },
        ...(row.spec !== undefined && { spec: row.spec }),
      }),
    ) as JsonObject
    const message = refusal(schema, manifest)
    expect(message).toContain(row.field)
    expect(message).toContain(row.says)
  })
})
