import { readFileSync } from 'node:fs'
import { type MCPExternalAuthConfig, mcpExternalAuthConfig } from '@thv/resources/kinds/mcp-external-auth-config/schema'
import { type MCPServer, mcpServer } from '@thv/resources/kinds/mcp-server/schema'
import type { SchemaNode } from '@thv/resources/schema/schema-walk'
import { expect, it } from 'vitest'
import { parse } from 'yaml'
import { planMcpServer } from '../apps/operator/src/controllers/mcp-server/plan.ts'
import { authConfigConditions } from '../apps/operator/src/references/judge-auth-config.ts'
import type { Lookup } from '../apps/operator/src/references/lookup.ts'
import { fixtureLookup, planFacts } from '../apps/operator/src/testing/fixture-namespace.ts'

/* The YAML of the pages about protection can be applied: every member is known, and nothing blocks the server. */

const PAGES = ['audit', 'backend-credentials', 'limits-and-redis', 'policies', 'protect-your-first-server', 'telemetry']
const metadata = { name: 'x', namespace: 'team', uid: 'uid-x', generation: 1 }
const policies = JSON.stringify({ version: '1.0', type: 'cedarv1', cedar: { policies: ['permit(principal, action, resource);'] } })

type Spec = Readonly<Record<string, unknown>>

/** A whole manifest, a spec, or members of a spec. */
function specsIn(page: string): Spec[] {
  const text = readFileSync(new URL(`../docs/how-to/${page}.md`, import.meta.url), 'utf8')
  const blocks = [...text.matchAll(/^```yaml\n([\s\S]*?)^```/gm)].map((match) => parse(match[1] ?? '') as { spec?: Spec })
  const files = [...text.matchAll(/^kubectl apply -f (deploy\/\S+)$/gm)].map(
    (match) => parse(readFileSync(new URL(`../${match[1]}`, import.meta.url), 'utf8')) as { spec: Spec },
  )
  return [...blocks, ...files].map((block) => block.spec ?? (block as Spec))
}

const ALL = PAGES.flatMap((page) => specsIn(page).map((spec, index) => [`${page} ${index + 1}`, spec] as const))

it('the pages have examples', () => {
  expect(new Set(ALL.map(([title]) => title.split(' ')[0]))).toEqual(new Set(PAGES))
  expect(ALL.length).toBeGreaterThanOrEqual(10)
})

it.each(ALL)('%s', (_, spec) => {
  const isAuthConfig = typeof spec['type'] === 'string'
  const schema = (isAuthConfig ? mcpExternalAuthConfig : mcpServer).spec as unknown as SchemaNode
  expect(unknownIn(spec, schema, 'spec')).toEqual([])
  const inline = { issuer: 'https://login.example.com', audience: 'a' }
  const own = { image: 'i', transport: 'streamable-http', oidcConfig: { type: 'inline', inline } }
  const lookup: Lookup = {
    ...fixtureLookup,
    configMap: (name) =>
      name === 'orders-policies' ? { uid: 'u', resourceVersion: '1', data: { 'authz.json': policies } } : fixtureLookup.configMap(name),
    externalAuthConfig: (name) => ({ metadata: { name }, spec }) as unknown as MCPExternalAuthConfig,
  }
  if (isAuthConfig) {
    const { conditions } = authConfigConditions({ spec: spec as unknown as MCPExternalAuthConfig['spec'] }, lookup)
    expect(conditions.filter(({ type, status }) => type === 'Valid' && status !== 'True')).toEqual([])
  }
  const used = isAuthConfig ? { ...own, externalAuthConfigRef: { name: 'this' } } : { ...own, ...spec }
  const plan = planMcpServer({ ...planFacts(), lookup, server: { metadata, spec: used } as unknown as MCPServer })
  expect(plan.blockers).toEqual([])
})

function unknownIn(value: unknown, node: SchemaNode, path: string): string[] {
  if (Array.isArray(value)) return value.flatMap((item, index) => (node.items ? unknownIn(item, node.items, `${path}[${index}]`) : []))
  if (typeof value !== 'object' || value === null || node.properties === undefined) return []
  return Object.entries(value).flatMap(([name, member]) => {
    const property = node.properties?.[name]
    return property === undefined ? [`${path}.${name}`] : unknownIn(member, property, `${path}.${name}`)
  })
}
