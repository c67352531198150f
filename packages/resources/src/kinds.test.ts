import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { KINDS } from './kinds.ts'
import { crdOf, openApiSchemaOf } from './schema/crd.ts'
import { lintSchema } from './schema/schema-lint.ts'
import { isLeaf, isRejected, leafPathsOf, type SchemaNode, walkSchema } from './schema/schema-walk.ts'

const FIXTURES = new URL('../../../test/fixtures/resources/', import.meta.url)
const MAX_CRD_BYTES = 200 * 1024

describe.each(KINDS.map((definition) => [definition.kind, definition] as const))('%s', (_kind, definition) => {
  const spec = definition.spec as SchemaNode

  it('has a schema that the API server takes, with a description on every node', () => {
    expect(lintSchema(spec, 'spec')).toEqual([])
    expect(lintSchema(definition.status as SchemaNode, 'status')).toEqual([])
  })

  it('stays small enough for a plain kubectl apply', () => {
    expect(JSON.stringify(crdOf(definition)).length).toBeLessThan(MAX_CRD_BYTES)
  })

  it('lets nothing of our own marks out', () => {
    expect(JSON.stringify(openApiSchemaOf(definition))).not.toContain('"~')
  })

  it('has a fixture for every leaf of its spec', () => {
    const set = new Set<string>()
    for (const manifest of fixturesOf(definition.plural, definition.kind))
      for (const path of leafPathsOf(manifest['spec'], spec, 'spec')) set.add(path)
    const missing: string[] = []
    const visited = [...walkSchema(spec, 'spec')]
    for (const { node, path, parents } of visited) {
      if (isLeaf(node) && ![node, ...parents].some(isRejected) && !set.has(path)) missing.push(path)
    }
    expect(missing).toEqual([])
    expect(visited.length).toBeGreaterThan(1)
  })
})

function fixturesOf(plural: string, kind: string): Record<string, unknown>[] {
  const folder = new URL(`${plural}/`, FIXTURES)
  const documents = readdirSync(folder).flatMap((file) =>
    parseAllDocuments(readFileSync(new URL(file, folder), 'utf8')).map((document) => document.toJSON()),
  )
  return documents.filter((document) => document?.kind === kind)
}
