import type { KubeObject } from '@thv/kube'
import { describe, expect, it } from 'vitest'
import { mcpResourceOf } from '../discover/objects/mcp-resource.ts'
import { keptResource, keptRoute, keptService } from './kept-objects.ts'

const long = 'x'.repeat(200_000)
const sizeOf = (object: KubeObject) => JSON.stringify(object).length
const metadata = (annotations: Record<string, string> = {}) => ({
  namespace: 'team',
  name: 'one',
  uid: '1',
  resourceVersion: '7',
  generation: 2,
  annotations,
  managedFields: [{ manager: long }],
})

describe('the part of an object that a watch keeps', () => {
  it('is small, however large the object is [001-090]', () => {
    const spec = {
      image: 'x.example/y:1',
      transport: 'sse',
      podTemplateSpec: { text: long },
      rules: [{ text: long }],
      selector: { app: 'x' },
    }
    const object = { metadata: metadata(), spec, status: { phase: 'Running', url: 'http://one/mcp', conditions: [{ message: long }] } }
    for (const keep of [keptResource, keptRoute, keptService]) expect(sizeOf(keep(object as unknown as KubeObject))).toBeLessThan(400)
  })

  it('of a route that does not opt in is its key alone, of one that does all that the export reads', () => {
    const spec = { parentRefs: [{ name: 'edge' }], rules: [] }
    const status = { parents: [] }
    expect(keptRoute({ metadata: metadata(), spec, status } as unknown as KubeObject)).toEqual({
      metadata: { namespace: 'team', name: 'one', uid: '1', resourceVersion: '7' },
    })
    const annotations = { 'toolhive.stacklok.dev/registry-export': 'true' }
    expect(keptRoute({ metadata: metadata(annotations), spec, status } as unknown as KubeObject)).toMatchObject({ spec, status })
  })

  it.each([
    ['MCPServer', { image: 'x', transport: 'stdio', proxyMode: 'sse' }],
    ['MCPServer', { image: 'x', transport: 'sse', oidcConfig: { type: 'inline', inline: { issuer: 'https://idp' } } }],
    ['VirtualMCPServer', { incomingAuth: { type: 'anonymous' } }],
    ['VirtualMCPServer', { incomingAuth: { type: 'oidc' } }],
  ] as const)('of a %s with %j gives the same resource as the whole', (kind, spec) => {
    const whole = {
      metadata: metadata(),
      spec,
      status: { phase: 'Running', url: 'http://one/mcp', observedGeneration: 1 },
    } as unknown as KubeObject
    expect(mcpResourceOf(kind, keptResource(whole))).toEqual(mcpResourceOf(kind, whole))
  })
  it('asks for the tools of the spec that is served, and again once a later one is', () => {
    const served = (observedGeneration?: number) =>
      mcpResourceOf('MCPServer', {
        metadata: metadata(),
        spec: {},
        status: { phase: 'Running', url: 'http://one/mcp', ...(observedGeneration !== undefined && { observedGeneration }) },
      } as unknown as KubeObject)?.askable?.generation
    expect([served(1), served(2), served()]).toEqual([1, 2, 2])
  })
})
