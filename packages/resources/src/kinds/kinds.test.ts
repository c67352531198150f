import { describe, expect, it } from 'vitest'
import { crdOf, openApiSchemaOf } from '../schema/crd.ts'
import { resourceTypeOf } from '../schema/kind-definition.ts'
import { lintSchema } from '../schema/schema-lint.ts'
import { isLeaf, isRejected, leafPathsOf, type SchemaNode, walkSchema } from '../schema/schema-walk.ts'
import { fixturesOf } from '../testing/fixtures.ts'
import { KINDS } from './kinds.ts'
import * as resourceTypes from './resource-types.ts'

const MAX_CRD_BYTES = 200 * 1024

it('there are the nine kinds of the design documents', () => {
  expect(KINDS.map((definition) => definition.kind)).toEqual([
    'MCPServer',
    'MCPRemoteProxy',
    'MCPGroup',
    'VirtualMCPServer',
    'VirtualMCPCompositeToolDefinition',
    'MCPRegistry',
    'MCPToolConfig',
    'MCPExternalAuthConfig',
    'MCPServerEntry',
  ])
})

it.each(Object.values(resourceTypes).map((type) => [type.kind, type] as const))(
  '%s is named without its schema as with it',
  (kind, type) => {
    expect(KINDS.filter((definition) => definition.kind === kind).map(resourceTypeOf)).toEqual([type])
  },
)

describe.each(KINDS.map((definition) => [definition.kind, definition] as const))('%s', (_kind, definition) => {
  const spec = definition.spec as SchemaNode

  it('has a schema that the API server takes, with a description on every node', () => {
    expect(lintSchema(spec, 'spec')).toEqual([])
    expect(lintSchema(definition.status as SchemaNode, 'status')).toEqual([])
  })

  it('stays small enough for a plain kubectl apply', () => {
    expect(Buffer.byteLength(JSON.stringify(crdOf(definition)))).toBeLessThan(MAX_CRD_BYTES)
  })

  it('serves both versions with the same rules, and the stored one with descriptions', () => {
    const { versions } = (crdOf(definition) as unknown as { spec: { versions: { schema: { openAPIV3Schema: SchemaNode } }[] } }).spec
    const [stored, older] = versions.map(({ schema }) => schema.openAPIV3Schema)
    if (stored === undefined || older === undefined) throw new Error('expects two versions')
    const rulesOf = (schema: SchemaNode) =>
      [...walkSchema(schema, '')].map(({ path, node: { description: _, properties, items, additionalProperties, ...rules } }) => ({
        path,
        names: Object.keys(properties ?? {}),
        hasItems: items !== undefined,
        isMap: additionalProperties !== undefined,
        rules,
      }))
    expect(rulesOf(older)).toEqual(rulesOf(stored))
    expect(stored).toEqual(openApiSchemaOf(definition))
  })

  it('lets none of our own marks out', () => {
    expect(JSON.stringify(openApiSchemaOf(definition))).not.toContain('"~')
  })

  it('has a fixture for every leaf of its spec', () => {
    const manifests = fixturesOf(definition.plural).filter(({ manifest }) => manifest.kind === definition.kind)
    const set = new Set(manifests.flatMap(({ manifest }) => [...leafPathsOf(manifest.spec, spec, 'spec')]))
    const leaves = [...walkSchema(spec, 'spec')].filter(
      ({ node, parents }) => isLeaf(node) && !parents.some(isLeaf) && ![node, ...parents].some(isRejected),
    )
    expect(leaves.length).toBeGreaterThan(0)
    expect(leaves.map(({ path }) => path).filter((path) => !set.has(path))).toEqual([])
  })
})
