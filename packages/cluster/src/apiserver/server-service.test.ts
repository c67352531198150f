import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TestClock } from '@thv/kernel/clock'
import { request } from '@thv/testkit/cluster/http-request'
import { describe, expect, it } from 'vitest'
import { startApiServer } from './api-server.ts'
import { textAt } from './objects/served-kind.ts'

const SLICES = 'endpointslices.discovery.k8s.io'

describe('default/kubernetes', () => {
  it('is a Service with the first address of the range, and a slice with the address of the server', async () => {
    await using server = await startApiServer({ serviceRange: '127.97.0.0/17' })
    const service = server.store.get('services', 'default/kubernetes')?.body
    expect(service).toMatchObject({
      metadata: { name: 'kubernetes', namespace: 'default', labels: { component: 'apiserver', provider: 'kubernetes' } },
      spec: {
        type: 'ClusterIP',
        clusterIP: '127.97.0.1',
        clusterIPs: ['127.97.0.1'],
        ipFamilies: ['IPv4'],
        ports: [{ name: 'https', port: 443 }],
      },
    })
    expect(server.store.get(SLICES, 'default/kubernetes')?.body).toMatchObject({
      metadata: { labels: { 'kubernetes.io/service-name': 'kubernetes' } },
      endpoints: [{ addresses: ['127.0.0.1'], conditions: { ready: true } }],
      ports: [{ name: 'https', protocol: 'TCP', port: Number(new URL(server.url).port) }],
    })
  })

  it('stays over a restart, and its slice follows the port', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'server-service-'))
    try {
      const first = await startApiServer({ folder })
      const [service, slice] = [first.store.get('services', 'default/kubernetes'), first.store.get(SLICES, 'default/kubernetes')]
      const { revision } = first.store
      await first.close()
      const again = await startApiServer({ folder })
      expect(again.store.revision).toBe(revision)
      await again.close()
      const [port, other] = [Number(new URL(again.url).port), await freePort()]
      const moved = await startApiServer({ folder, port: other })
      const found = moved.store.get(SLICES, 'default/kubernetes')?.body
      expect(found?.['ports']).toEqual([{ name: 'https', protocol: 'TCP', port: other }])
      expect(other).not.toBe(port)
      expect(found?.['metadata']).toMatchObject({ uid: textAt(slice?.body, 'metadata', 'uid') })
      expect(moved.store.get('services', 'default/kubernetes')?.revision).toBe(service?.revision)
      await moved.close()
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})

async function freePort(): Promise<number> {
  await using server = await startApiServer()
  return Number(new URL(server.url).port)
}

describe('pages of a list', () => {
  it('can be continued for five minutes at least, and not after ten', async () => {
    const clock = new TestClock()
    await using server = await startApiServer({ clock })
    const get = (path: string) =>
      request(`${server.url}${path}`, { caPem: server.caPem, headers: { authorization: `Bearer ${server.adminToken}` } })
    const list = async (more = '') => {
      const answer = await get(`/api/v1/namespaces?limit=2${more}`)
      return JSON.parse(answer.text) as { code?: number; reason?: string; metadata: { continue?: string } }
    }
    const token = encodeURIComponent((await list()).metadata.continue ?? '')
    server.store.create('configmaps', 'default/x', { metadata: { name: 'x', namespace: 'default' } })
    await clock.advance(5 * 60_000 + 1)
    expect((await list(`&continue=${token}`)).code).toBeUndefined()
    await clock.advance(5 * 60_000)
    const expired = await list(`&continue=${token}`)
    expect([expired.code, expired.reason]).toEqual([410, 'Expired'])
    const rest = await list(`&continue=${encodeURIComponent(expired.metadata.continue ?? '')}`)
    expect(rest.code).toBeUndefined()
  })
})

describe('a review', () => {
  it('is not answered as a Table', async () => {
    await using server = await startApiServer()
    const { status } = await request(`${server.url}/apis/authorization.k8s.io/v1/selfsubjectaccessreviews`, {
      method: 'POST',
      caPem: server.caPem,
      body: {},
      headers: { authorization: `Bearer ${server.adminToken}`, accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' },
    })
    expect(status).toBe(406)
  })
})
