import { expect } from 'vitest'
import { checkServerDocument } from '../../server-document.ts'
import { accepted, annotation, discoverWorld, type ExportWorld, exportWorld, type Manifest, summary } from './export-world.ts'

/*
 * The decision table. Each row changes one thing of `exportWorld`: MCPServer mcp-servers/github-mcp (sse) with a description, its proxy
 * Service, HTTPRoute r1 (mcp.company.com, PathPrefix /github) to external-gateway (HTTPS 443, address lb.company.com) with a grant.
 */
export type Row = readonly [title: string, change: (world: ExportWorld) => void, entries: readonly string[], reasons: readonly string[]]

export const NAME = 'dev.stacklok.toolhive/mcp-servers.github-mcp@1.0.0'
export const at = (...urls: string[]) => [[NAME, ...urls.map((url) => `sse ${url}`)].join(' ')]
export const USUAL = at('https://mcp.company.com/github')
export const SERVER_MODE = { mode: 'server', crossNamespaceGateway: 'accepted' } as const

export const first = (list: Manifest[]): Manifest => list[0]
export const routeOf = (world: ExportWorld): Manifest => first(world.routes)
export const ruleOf = (world: ExportWorld): Manifest => routeOf(world).spec.rules[0]
export const serverOf = (world: ExportWorld): Manifest => first(world.servers)
export const gatewayOf = (world: ExportWorld): Manifest => first(world.gateways)
export const serviceOf = (world: ExportWorld): Manifest => first(world.services)
export const annotate = (object: Manifest, values: Record<string, string>) => {
  for (const [name, value] of Object.entries(values)) object.metadata.annotations[annotation(name)] = value
}
/** No route, and the mode of the registry server. */
export const direct = (values: Record<string, string>) => (world: ExportWorld) => {
  world.routes = []
  world.options = SERVER_MODE
  annotate(serverOf(world), values)
}
export const conditions = (world: ExportWorld, given: Record<string, string>) => {
  routeOf(world).status.parents = [accepted(routeOf(world).spec.parentRefs[0], given)]
}
export const listeners = (world: ExportWorld, ...list: Manifest[]) => {
  gatewayOf(world).spec.listeners = list
}
export const section = (world: ExportWorld, parentRef: Manifest) => {
  Object.assign(routeOf(world).spec.parentRefs[0], parentRef)
}
export const second = (world: ExportWorld, name: string, change: (parentRef: Manifest) => void = () => {}) => {
  const parentRef = { ...routeOf(world).spec.parentRefs[0], name }
  change(parentRef)
  routeOf(world).spec.parentRefs.push(parentRef)
  routeOf(world).status.parents.push(accepted(parentRef))
}
export const source = (name: string, version: string, more: Manifest = {}, claims?: Manifest) => ({
  name,
  version,
  text: JSON.stringify({
    name,
    description: 'GitHub from the source',
    version,
    packages: [{ registryType: 'oci', identifier: 'ghcr.io/x/github:1', transport: { type: 'stdio' } }],
    ...more,
  }),
  tags: [],
  ...(claims === undefined ? {} : { claims }),
})

export function checkRow([, change, entries, reasons]: Row): void {
  const world = exportWorld()
  change(world)
  const result = discoverWorld(world)
  expect(summary(result)).toEqual({ entries, reasons })
  for (const { text } of result.entries) expect(checkServerDocument(JSON.parse(text), { level: 'semantic' })).toMatchObject({ ok: true })
  expect(JSON.stringify(result)).not.toContain('hunter2')
}
