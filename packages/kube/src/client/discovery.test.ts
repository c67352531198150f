import { TestClock } from '@thv/kernel/clock'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { deployments, pods } from '../objects/resource-types.ts'
import { type Handler, type LoopbackServer, sendJson, sendStatus, startLoopback } from '../testing/loopback-server.ts'
import { createKubeClient, type KubeClient } from './client.ts'
import { createDiscovery, type Discovery } from './discovery.ts'

const answers: Record<string, unknown> = {
  '/version': { major: '1', minor: '34', gitVersion: 'v1.34.1', platform: 'x' },
  '/api': { versions: ['v1'] },
  '/api/v1': {
    resources: [
      { name: 'pods', kind: 'Pod', namespaced: true, verbs: ['get'], shortNames: ['po'] },
      { name: 'pods/log', kind: 'Pod' },
    ],
  },
  '/apis/apps': { versions: [{ version: 'v1' }, { version: 'v1beta1' }], preferredVersion: { groupVersion: 'apps/v1', version: 'v1' } },
  '/apis/apps/v1': { resources: [{ name: 'deployments', kind: 'Deployment', namespaced: true, verbs: ['list'] }] },
  '/apis/odd': {},
  '/apis/odd/v1': { resources: 7 },
}

describe('discovery', () => {
  const standard: Handler = (request, response) => {
    const answer = answers[request.url]
    if (answer === undefined) sendStatus(response, 404, { reason: 'NotFound' })
    else sendJson(response, 200, answer)
  }
  let handler: Handler
  let server: LoopbackServer
  let client: KubeClient
  let clock: TestClock
  let discovery: Discovery

  beforeEach(async () => {
    handler = standard
    server = await startLoopback((...args) => handler(...args))
    client = createKubeClient(server.connection(), { retry: { maxAttempts: 1 } })
    clock = new TestClock()
    discovery = createDiscovery(client, { clock, ttlMs: 1_000 })
  })
  afterEach(async () => {
    await client.close()
    await server[Symbol.asyncDispose]()
  })

  it('tells the version', async () => {
    expect(await discovery.serverVersion()).toEqual({ major: '1', minor: '34', gitVersion: 'v1.34.1' })
  })

  it('lists resources, and undefined for a group or version that is not there', async () => {
    expect(await discovery.resources('v1')).toEqual([
      { name: 'pods', kind: 'Pod', namespaced: true, verbs: ['get'], shortNames: ['po'] },
      { name: 'pods/log', kind: 'Pod', namespaced: false, verbs: [], shortNames: [] },
    ])
    expect(await discovery.resources('apps/v9')).toBeUndefined()
  })

  it('tells whether a kind is served', async () => {
    expect(await discovery.hasResource(pods)).toBe(true)
    expect(await discovery.hasResource(deployments)).toBe(true)
    expect(await discovery.hasResource({ ...deployments, plural: 'others' })).toBe(false)
    expect(await discovery.hasResource({ ...deployments, kind: 'Other' })).toBe(false)
    expect(await discovery.hasResource({ ...deployments, version: 'v9' })).toBe(false)
    expect(await discovery.hasResource({ ...deployments, group: 'example.test' })).toBe(false)
  })

  it('tells the preferred version', async () => {
    expect(await discovery.preferredVersion('')).toBe('v1')
    expect(await discovery.preferredVersion('apps')).toBe('v1')
    expect(await discovery.preferredVersion('example.test')).toBeUndefined()
  })

  it('a server that fails or is away is an error, never a "no", and is not kept', async () => {
    handler = (_request, response) => sendStatus(response, 500)
    await expect(discovery.hasResource(pods)).rejects.toMatchObject({ status: 500 })
    handler = (_request, response) => void response.socket?.destroy()
    await expect(discovery.hasResource(pods)).rejects.toMatchObject({ code: 'kube_unreachable' })
    handler = standard
    expect(await discovery.hasResource(pods)).toBe(true)
  })

  it('odd answers are kube_response_malformed', async () => {
    await expect(discovery.preferredVersion('odd')).rejects.toMatchObject({ code: 'kube_response_malformed' })
    await expect(discovery.resources('odd/v1')).rejects.toMatchObject({ code: 'kube_response_malformed' })
  })

  it('refuses a group that would leave its path', async () => {
    await expect(discovery.preferredVersion('../api')).rejects.toMatchObject({ status: 400 })
    await expect(discovery.resources('a/../..')).rejects.toMatchObject({ status: 400 })
    expect(server.requests).toHaveLength(0)
  })

  it('keeps answers, also negative ones, for its time, and asks once for many', async () => {
    const ask = async () => [await discovery.hasResource(pods), await discovery.hasResource({ ...pods, group: 'example.test' })]
    await Promise.all(Array.from({ length: 20 }, ask))
    expect(server.requests).toHaveLength(2)
    await clock.advance(999)
    await ask()
    expect(server.requests).toHaveLength(2)
    await clock.advance(1)
    await ask()
    expect(server.requests).toHaveLength(4)
  })

  it('forgets on demand, also what is still on its way', async () => {
    await discovery.hasResource(pods)
    discovery.forget()
    const early = discovery.hasResource(pods)
    discovery.forget()
    await Promise.all([early, discovery.hasResource(pods)])
    expect(server.requests).toHaveLength(3)
    await discovery.hasResource(pods)
    expect(server.requests).toHaveLength(3)
  })
})
